import { createHash } from 'node:crypto'
import { test } from 'tap'
import { PROBLEM_CODES } from '../../src/problem.ts'
import { sendTo } from '../support/user.ts'
import { browsersOr, testWindow } from '../support/browser/browsers.ts'
import { ALONE } from '../support/server/settings.ts'
import { testServer } from '../support/server/test-server.ts'

const NAVIGATION = { accept: 'text/html,application/xhtml+xml,*/*;q=0.8', 'sec-fetch-mode': 'navigate' }

/** The text of a page. */
const words = (page: string): string => page.replaceAll(/<style>.*<\/style>|<[^>]*>/gs, ' ').replaceAll(/\s+/g, ' ')

await test('a navigation gets a problem as an HTML page, every other request as application/problem+json', async (t) => {
  const { port } = await testServer(t, ALONE)
  for (const [path, status, code] of [
    ['/nothing', 404, 'not_found'],
    ['/auth/logout', 405, 'method_not_allowed'],
    ['/api/account/v1/nickname', 403, 'csrf_rejected'],
    ['/ws/public', 426, 'upgrade_required'],
    ['/api/%zz', 400, 'bad_request'],
    [`/x${'y'.repeat(9000)}`, 404, 'not_found'],
  ] as const) {
    const page = await sendTo(port, 'GET', path, { headers: NAVIGATION })
    t.equal(page.status, status, path)
    t.equal(page.headers['content-type'], 'text/html; charset=utf-8')
    t.equal(page.headers['cache-control'], 'no-store')
    t.equal(page.headers['x-content-type-options'], 'nosniff')
    t.match(words(page.text), `Code ${code}`)
    t.match(words(page.text), `Status ${status}`)
    t.match(words(page.text), `Request ${String(page.headers['x-request-id'])}`)
    const style = /<style>(.*)<\/style>/s.exec(page.text)?.[1] ?? ''
    const hash = createHash('sha256').update(style).digest('base64')
    t.equal(
      page.headers['content-security-policy'],
      `default-src 'none'; style-src 'sha256-${hash}'; frame-ancestors 'none'`,
    )
    t.match(page.text, /<main>\s*<h1>[^]*<dl>[^]*<\/main>/)
    t.notMatch(page.text, /<script|style=|src=|href="(?!http:)/i, 'the page loads nothing')
    for (const accept of ['*/*', 'application/json', '']) {
      const document = await sendTo(port, 'GET', path, { headers: { accept } })
      t.equal(document.headers['content-type'], 'application/problem+json', `accept: ${accept}`)
      t.match(document.json, { code, status, type: `/problems/${code}` })
      t.match(words(page.text), String(document.json['title']))
    }
  }
  // Media types have no case (RFC 9110 §8.3.1).
  const capitals = await sendTo(port, 'GET', '/nothing', { headers: { accept: 'Text/HTML' } })
  t.equal(capitals.headers['content-type'], 'text/html; charset=utf-8')
  const head = await sendTo(port, 'HEAD', '/nothing', { headers: NAVIGATION })
  t.equal(head.status, 404)
  t.equal(head.bytes.length, 0)
})

await test('a problem page escapes the values of a request', async (t) => {
  const { port } = await testServer(t, ALONE)
  const origin = `http://a"><img src=x onerror=alert(1)>'&`
  const headers = { ...NAVIGATION, 'x-csrf': '1', origin }
  const { text } = await sendTo(port, 'GET', '/api/account/v1/nickname', { headers })
  t.match(text, 'http://a&quot;&gt;&lt;img src=x onerror=alert(1)&gt;&#39;&amp;')
  t.notMatch(text, '<img')
})

await test('GET /problems/:code explains every code', async (t) => {
  const { port } = await testServer(t, ALONE)
  for (const code of PROBLEM_CODES) {
    const page = await sendTo(port, 'GET', `/problems/${code}`, { headers: NAVIGATION })
    t.equal(page.status, 200, code)
    t.match(page.headers['content-security-policy'], /^default-src 'none';/)
    t.match(page.headers.vary, /Accept/)
    t.match(words(page.text), `Code ${code}`)
    const document = await sendTo(port, 'GET', `/problems/${code}`)
    t.equal(document.headers['content-type'], 'application/problem+json')
    t.match(document.json, { code, type: `/problems/${code}` })
    t.match(words(page.text).replaceAll('&#39;', "'"), String(document.json['detail']), 'the page shows the detail')
  }
  for (const code of ['nothing', 'constructor', '__proto__', 'toString']) {
    t.equal((await sendTo(port, 'GET', `/problems/${code}`)).status, 404, code)
  }
})

await test('a file of STATIC_DIR takes precedence over GET /problems/:code', async (t) => {
  const STATIC_DIR = t.testdir({
    'index.html': 'home',
    problems: {
      not_found: 'ours',
      bad_request: { 'index.html': 'ours, too' },
      'style.css': 'mine',
      '.secret': 'hidden',
    },
  })
  const { port } = await testServer(t, { ...ALONE, STATIC_DIR })
  const get = async (path: string) => (await sendTo(port, 'GET', path, { headers: NAVIGATION })).text
  t.equal(await get('/problems/not_found'), 'ours')
  t.equal(await get('/problems/bad_request'), 'ours, too')
  t.match(await get('/problems/rate_limited'), 'Code</dt>')
  t.equal(await get('/problems/style.css'), 'mine', 'also a file whose name is no code')
  for (const name of ['another', '.secret', '..', '.', '%2e%2e', '..%2findex.html']) {
    t.match(await sendTo(port, 'GET', `/problems/${name}`, { headers: NAVIGATION }), {
      status: 404,
      text: /Code<\/dt>\s*<dd>not_found/,
    })
  }
})

for (const name of browsersOr('firefox')) {
  await test(`${name} shows the page of a problem`, async (t) => {
    const { url } = await testServer(t, ALONE)
    const window = await testWindow(t, name)
    const tab = await window.newPage()
    const complaints: string[] = []
    tab.on('console', (message) => complaints.push(message.text()))
    await tab.goto(`${url}/nothing`)
    t.match(await tab.evaluate('document.body.innerText'), /Nothing is here[^]*not_found/)
    t.match(await tab.evaluate('getComputedStyle(document.body).maxWidth'), /px$/, 'the style of the page applies')
    t.same(
      complaints.filter((text) => /Content.Security/i.test(text)),
      [],
    )
  })
}
