import { readFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { test } from 'tap'
import { sendTo } from '../support/user.ts'
import { ALONE } from '../support/server/settings.ts'
import { testServer } from '../support/server/test-server.ts'

const MODULES = ['client.js', 'client/orders.js', 'client/series.js']

for (const module of MODULES) {
  await test(`GET /${module}: a module of the browser package, revalidated by its ETag`, async (t) => {
    const { port } = await testServer(t, ALONE)
    const get = (headers: Record<string, string> = {}) => sendTo(port, 'GET', `/${module}`, { headers })
    const built = await readFile(new URL(`../../client/dist/${module}`, import.meta.url), 'utf8')
    const [code = '', map] = built.split('//# sourceMappingURL=')
    t.equal(map, `${basename(module)}.map\n`, 'the map, which is not served, is for bundlers')
    const bundle = Buffer.from(code)
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
    for (const value of [etag, `"other", ${etag}`, etag.replace('W/', '')]) {
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
}

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

await test('GET /client.js and its parts: a file of STATIC_DIR wins', async (t) => {
  const STATIC_DIR = t.testdir({ 'client.js': 'mine', client: { 'series.js': 'mine too' } })
  const { port } = await testServer(t, { ...ALONE, STATIC_DIR })
  t.equal((await sendTo(port, 'GET', '/client.js')).text, 'mine')
  t.equal((await sendTo(port, 'GET', '/client/series.js')).text, 'mine too')
})

await test('what only bundlers and tests use is not served', async (t) => {
  const { port } = await testServer(t, ALONE)
  for (const name of [
    'client/testing.js',
    'testing.js',
    'client/react.js',
    'react.js',
    'client.js.map',
    'client.d.ts',
  ]) {
    t.equal((await sendTo(port, 'GET', `/${name}`)).status, 404, name)
  }
})
