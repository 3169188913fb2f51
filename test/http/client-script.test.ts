import { readFile } from 'node:fs/promises'
import { gunzipSync } from 'node:zlib'
import { test } from 'tap'
import { sendTo } from '../support/upstream/api-world.ts'
import { ALONE } from '../support/server/settings.ts'
import { testServer } from '../support/server/world.ts'

const BUNDLE = new URL('../../client/dist/client.js', import.meta.url)

await test('GET /client.js: the browser package, revalidated by its ETag', async (t) => {
  const { port } = await testServer(t, ALONE)
  const get = (headers: Record<string, string> = {}) => sendTo(port, 'GET', '/client.js', { headers })
  const bundle = await readFile(BUNDLE)
  const plain = await get()
  t.equal(plain.status, 200)
  t.ok(plain.bytes.equals(bundle))
  t.match(plain.headers, {
    'content-type': 'text/javascript; charset=utf-8',
    'cache-control': 'no-cache',
    vary: 'Origin, Accept-Encoding',
    'cross-origin-resource-policy': 'same-site',
  })
  const etag = String(plain.headers['etag'])
  for (const value of [etag, `"other", ${etag}`]) {
    const fresh = await get({ 'if-none-match': value })
    t.equal(fresh.status, 304)
    t.equal(fresh.bytes.length, 0)
  }
  t.equal((await get({ 'if-none-match': '"other"' })).status, 200)

  for (const [accepted, encoding] of [
    ['gzip, br', 'gzip'],
    ['br;q=1, gzip;q=0.5', 'gzip'],
    ['gzip;q=0', undefined],
    ['identity', undefined],
  ] as const) {
    const response = await get({ 'accept-encoding': accepted })
    t.equal(response.headers['content-encoding'], encoding, accepted)
    t.ok((encoding === undefined ? response.bytes : gunzipSync(response.bytes)).equals(bundle))
  }
})

await test('GET /client.js: pages of listed origins may import it, others may not', async (t) => {
  const listed = 'http://localhost:5173'
  const { port } = await testServer(t, { ...ALONE, FRONTEND_ORIGINS: listed })
  for (const [origin, allowed] of [
    [listed, listed],
    ['http://elsewhere.test', undefined],
  ] as const) {
    const { headers } = await sendTo(port, 'GET', '/client.js', { headers: { origin } })
    t.equal(headers['access-control-allow-origin'], allowed)
  }
})

await test('GET /client.js: a file of STATIC_DIR wins', async (t) => {
  const STATIC_DIR = t.testdir({ 'client.js': 'mine' })
  const { port } = await testServer(t, { ...ALONE, STATIC_DIR })
  t.equal((await sendTo(port, 'GET', '/client.js')).text, 'mine')
})
