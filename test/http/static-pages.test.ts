import { gunzipSync, gzipSync } from 'node:zlib'
import { test, type Test } from 'tap'
import { ALONE } from '../support/server/settings.ts'
import { sendTo } from '../support/user.ts'
import { testServer } from '../support/server/test-server.ts'
import { nodeWarnings } from '../support/telemetry/node-warnings.ts'

const NAVIGATION = { 'sec-fetch-mode': 'navigate', accept: 'text/html' }

/** A server with these files. */
async function pages(t: Test, files: Parameters<Test['testdir']>[0], settings: Record<string, string> = {}) {
  const { port } = await testServer(t, { ...ALONE, STATIC_DIR: t.testdir(files), ...settings })
  return (path: string, headers: Record<string, string> = {}, method = 'GET') => sendTo(port, method, path, { headers })
}

await test('pages of STATIC_DIR may run only their own scripts, and cannot be framed', async (t) => {
  const get = await pages(t, { 'index.html': '<h1>home</h1>', 'app.js': '1', '.secret': 'x', api: { file: 'x' } })
  for (const path of ['/', '/app.js', '/deep/link?x=1']) {
    const response = await get(path, NAVIGATION)
    t.equal(response.status, 200, path)
    t.equal(
      response.headers['content-security-policy'],
      "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; object-src 'none'",
    )
    t.equal(response.headers['x-content-type-options'], 'nosniff')
  }
  t.equal((await get('/deep/link', NAVIGATION)).text, '<h1>home</h1>')
  t.equal((await get('/deep/link', { 'sec-fetch-mode': 'cors' })).status, 404, 'a script gets no page for data')
  for (const path of ['/.secret', '/api/file', '/auth/nothing', '/%2e%2e/package.json']) {
    t.match((await get(path, { 'sec-fetch-mode': 'cors' })).status, /^4/, path)
  }
})

await test('no page of STATIC_DIR, however it is sent, is a leak to Node.js', async (t) => {
  const warnings = nodeWarnings(t)
  const send = await pages(t, { 'index.html': '<h1>home</h1>', 'client.js': '1', problems: { own: 'x' } })
  for (const path of ['/', '/deep/link', '/client.js', '/problems/own']) {
    for (const method of ['GET', 'HEAD']) {
      const { status } = await send(path, { ...NAVIGATION, 'accept-encoding': 'gzip, br' }, method)
      t.equal(status, 200, `${method} ${path}`)
    }
  }
  t.same(warnings, [])
})

/** No file system takes such a name. */
const LONG = `/${'a'.repeat(300)}`

await test('a wrong method on a file of STATIC_DIR gets 405 with Allow, and anything else 404 as ever', async (t) => {
  const files = {
    'index.html': 'home',
    'a b.js': '1',
    docs: { 'index.html': 'x' },
    '.env': 'x',
    api: { file: 'x' },
    empty: {},
  }
  const send = await pages(t, files)
  for (const method of ['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
    for (const path of ['/', '/index.html', '/index.html?x=%2e', '/a%20b.js', '/docs/', '/docs/index.html']) {
      const { status, headers, json } = await send(path, { accept: '*/*' }, method)
      t.match(
        { status, allow: headers.allow, json },
        { status: 405, allow: 'GET, HEAD', json: { code: 'method_not_allowed' } },
        `${method} ${path}`,
      )
    }
    for (const path of [
      '/.env',
      '/api/file',
      '/nothing',
      '/empty/',
      '/%zz',
      '/%2e%2e/package.json',
      '/a%00.js',
      LONG,
    ]) {
      const { status, headers } = await send(path, NAVIGATION, method)
      t.match(status, /^40[04]$/, `${method} ${path}`)
      t.equal(headers.allow, undefined)
    }
  }
})

await test('HEAD as a navigation gets 405 on a route that has none, and the headers of index.html on other paths', async (t) => {
  const send = await pages(t, { 'index.html': 'home' })
  for (const path of ['/openapi.json', '/asyncapi.json', '/client.js', '/client/orders.js', '/problems/not_found']) {
    const { status, headers } = await send(path, NAVIGATION, 'HEAD')
    t.same([status, headers.allow], [405, 'GET'], path)
  }
  t.match(await send('/deep/link', NAVIGATION, 'HEAD'), { status: 200, headers: { 'content-length': '4' } })
})

await test('of hidden files only those of /.well-known/ are served', async (t) => {
  const get = await pages(t, {
    'index.html': 'home',
    '.git': { config: 'secret', '.well-known': { x: 'secret' } },
    '.well-known': { 'security.txt': 'Contact', '.htpasswd': 'secret' },
    a: { '.env': 'secret', '.well-known': { x: 'secret' } },
  })
  for (const headers of [NAVIGATION, {}]) t.equal((await get('/.well-known/security.txt', headers)).text, 'Contact')
  const hidden = [
    '/.git/config',
    '/%2egit/config',
    '/.git/.well-known/x',
    '/.well-known/.htpasswd',
    '/a/.well-known/x',
    '/a/.env',
    '/.well-known',
  ]
  for (const path of hidden) {
    t.equal((await get(path, { 'sec-fetch-mode': 'cors' })).status, 404, path)
    t.notMatch((await get(path, NAVIGATION)).text, 'secret', path)
  }
})

await test('index.html answers a navigation to an unknown path, also one that a service worker passes on', async (t) => {
  const get = await pages(t, { 'index.html': 'home' })
  for (const [mode, accept, found] of [
    ['navigate', 'text/html,*/*', true],
    ['same-origin', 'text/html,*/*', true],
    [undefined, 'text/html', true],
    ['navigate', '*/*', false],
    ['same-origin', '*/*', false],
    ['cors', 'text/html', false],
    ['no-cors', 'text/html', false],
    [undefined, '*/*', false],
    [undefined, undefined, false],
  ] as const) {
    const headers = { ...(mode && { 'sec-fetch-mode': mode }), ...(accept && { accept }) }
    const response = await get('/deep/link', headers)
    t.equal(response.status, found ? 200 : 404, JSON.stringify(headers))
    t.equal(response.text === 'home', found)
  }
  for (const path of ['/api/x', '/auth/x', '/ws/x']) t.equal((await get(path, NAVIGATION)).status, 404, path)
  t.equal((await get('/deep/link', NAVIGATION, 'POST')).status, 404)
  for (const path of ['/a//b', '//host/index.html', '/api//x', '/../index.html', '/a/../index.html']) {
    const { status, json } = await get(path, { 'sec-fetch-mode': 'cors' })
    t.match([status, json['code']], [404, 'not_found'], path)
  }
  t.equal((await get('/deep/link', NAVIGATION)).headers['cache-control'], 'no-cache')
})

await test('a range beyond the end gets 416, and an invalid range is ignored', async (t) => {
  const get = await pages(t, { 'index.html': '', 'data.bin': '0123456789' })
  const range = (text: string) => get('/data.bin', { range: text })
  const part = await range('bytes=2-4')
  t.match([part.status, part.text, part.headers['content-range']], [206, '234', 'bytes 2-4/10'])
  t.equal((await range('bytes=-3')).text, '789')
  for (const beyond of ['bytes=10-', 'bytes=100-200', 'bytes=10-10']) {
    const { status, headers, json } = await range(beyond)
    t.equal(status, 416, beyond)
    t.equal(headers['content-range'], 'bytes */10')
    t.match(json, { code: 'bad_request', status: 416 })
  }
  for (const none of ['bytes=abc', 'bytes=5-2', 'bytes=', 'bytes=-', 'lines=1-2', 'x', 'bytes=1-2,x', '\t']) {
    const { status, text } = await range(none)
    t.match([status, text], [200, '0123456789'], none)
  }
})

await test('files are sent compressed, and a file with a hash in its name is cached for ever', async (t) => {
  const script = 'const text = "it repeats, it repeats, it repeats";\n'.repeat(100)
  const get = await pages(t, {
    'index.html': `<title>x</title>${'<p>text</p>'.repeat(500)}`,
    'app.js': script,
    'app.3f2a1b9c.js': script,
    'photo-IMG12345.jpg': 'x'.repeat(5000),
    'facade-deadbeef.css': 'a{}',
    assets: {
      'index-DiwrgTda.js': script,
      'index-DiwrgTda.js.br': 'brotli',
      'date-picker-v2.js': script,
      'logo.svg': script,
      'logo-B7nXq2Zk.svg': script,
      'Inter-SemiBold.woff2': 'x',
      'hero-Homepage.webp': 'x',
      'terms-Version2.pdf': 'x',
    },
    'made.js': script,
    'made.js.gz': gzipSync('made before'),
  })
  const gzip = { 'accept-encoding': 'gzip' }
  for (const path of ['/', '/app.js', '/assets/logo.svg']) {
    const plain = await get(path)
    const packed = await get(path, gzip)
    t.notOk('content-encoding' in plain.headers, path)
    t.equal(packed.headers['content-encoding'], 'gzip')
    t.match(packed.headers.vary, /^Origin, accept-encoding$/i)
    t.match(plain.headers.vary, /^Origin, accept-encoding$/i)
    t.ok(gunzipSync(packed.bytes).equals(plain.bytes), 'the content is the same')
    t.ok(packed.bytes.length < plain.bytes.length / 2)
  }
  t.equal(gunzipSync((await get('/made.js', gzip)).bytes).toString(), 'made before')
  const brotli = await get('/assets/index-DiwrgTda.js', { 'accept-encoding': 'gzip, br' })
  t.match([brotli.headers['content-encoding'], brotli.text], ['br', 'brotli'])
  t.match(brotli.headers['content-type'], /javascript/)
  t.notOk('content-encoding' in (await get('/photo-IMG12345.jpg', gzip)).headers, 'an image is not compressed')
  t.equal((await get('/app.js', { ...gzip, range: 'bytes=0-4' })).text, 'const', 'a part of a file is of the file')

  const immutable = 'max-age=31536000, immutable'
  for (const [path, expected] of [
    ['/app.3f2a1b9c.js', immutable],
    ['/assets/index-DiwrgTda.js', immutable],
    ['/', 'no-cache'],
    ['/index.html', 'no-cache'],
    ['/app.js', 'no-cache'],
    ['/assets/date-picker-v2.js', 'no-cache'],
    ['/assets/logo.svg', 'no-cache'],
    ['/assets/logo-B7nXq2Zk.svg', immutable],
    ['/assets/Inter-SemiBold.woff2', 'no-cache'],
    ['/assets/hero-Homepage.webp', 'no-cache'],
    ['/assets/terms-Version2.pdf', 'no-cache'],
    ['/photo-IMG12345.jpg', 'no-cache'],
    ['/facade-deadbeef.css', 'no-cache'],
  ] as const) {
    for (const headers of [{}, gzip]) t.equal((await get(path, headers)).headers['cache-control'], expected, path)
  }
  const { etag = '' } = (await get('/app.js', gzip)).headers
  t.equal((await get('/app.js', { ...gzip, 'if-none-match': etag })).status, 304)
})

await test('STATIC_CSP replaces the content security policy', async (t) => {
  const STATIC_CSP = "default-src 'none'"
  const get = await pages(t, { 'index.html': '' }, { STATIC_CSP })
  t.equal((await get('/')).headers['content-security-policy'], STATIC_CSP)
})
