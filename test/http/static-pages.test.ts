import { test } from 'tap'
import { sendTo } from '../support/api-world.ts'
import { testServer } from '../support/world.ts'

const NAVIGATION = { 'sec-fetch-mode': 'navigate', accept: 'text/html' }

await test('pages may run their own scripts only, and stand in no frame', async (t) => {
  const dir = t.testdir({ 'index.html': '<h1>home</h1>', 'app.js': '1', '.secret': 'x', api: { file: 'x' } })
  const { port } = await testServer(t, {
    AUTH_URL: 'http://127.0.0.1:9',
    API_URL: 'http://127.0.0.1:9',
    WS_URL: 'ws://127.0.0.1:9',
    STATIC_DIR: dir,
  })
  const get = (path: string, headers: Record<string, string>) => sendTo(port, 'GET', path, { headers })
  for (const path of ['/', '/app.js', '/deep/link?x=1']) {
    const answer = await get(path, NAVIGATION)
    t.equal(answer.status, 200, path)
    t.equal(
      answer.headers['content-security-policy'],
      "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; object-src 'none'",
    )
    t.equal(answer.headers['x-content-type-options'], 'nosniff')
  }
  t.equal((await get('/deep/link', NAVIGATION)).text, '<h1>home</h1>')
  t.equal(
    (await get('/deep/link', { 'sec-fetch-mode': 'cors' })).status,
    404,
    'a script gets no page for data',
  )
  for (const path of ['/.secret', '/api/file', '/auth/nothing', '/%2e%2e/package.json']) {
    t.match((await get(path, { 'sec-fetch-mode': 'cors' })).status, /^4/, path)
  }
})

await test('STATIC_CSP is another policy', async (t) => {
  const STATIC_CSP = "default-src 'none'"
  const { port } = await testServer(t, {
    AUTH_URL: 'http://127.0.0.1:9',
    API_URL: 'http://127.0.0.1:9',
    WS_URL: 'ws://127.0.0.1:9',
    STATIC_DIR: t.testdir({ 'index.html': '' }),
    STATIC_CSP,
  })
  t.equal((await sendTo(port, 'GET', '/')).headers['content-security-policy'], STATIC_CSP)
})
