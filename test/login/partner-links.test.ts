import { array, assert, constantFrom, oneof, property, string } from 'fast-check'
import { test } from 'tap'
import { readAttribution } from '../../src/login/attribution.ts'
import { PUBLISHED_LINKS, RIGHT_QUERY } from '../support/login/partner-links.ts'
import { sendTo } from '../support/user.ts'
import { browsersOr, testWindow } from '../support/browser/browsers.ts'
import { ALONE } from '../support/server/settings.ts'
import { testServer } from '../support/server/test-server.ts'

const LINK = RIGHT_QUERY
const NAVIGATION = { accept: 'text/html', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }

/** What a response says of a link, as in the table. */
function saidOf(status: number, headers: Readonly<Record<string, string | string[] | undefined>>): string {
  if (status !== 200) return String(status)
  const said = [headers['x-attribution'], headers['x-attribution-problems']].filter(Boolean).join(' ')
  const notes = headers['x-attribution-notes']
  return notes === undefined ? said : `${said}; ${String(notes)}`
}

await test('HEAD of every published link: what is complete, what is wrong, and what is probably a mistake', async (t) => {
  const { port } = await testServer(t, ALONE)
  t.ok(PUBLISHED_LINKS.length >= 70)
  t.equal(new Set(PUBLISHED_LINKS.map(({ link }) => link)).size, PUBLISHED_LINKS.length, 'each link once')
  for (const { what, link, says, campaign } of PUBLISHED_LINKS) {
    const { status, headers } = await sendTo(port, 'HEAD', link)
    t.equal(saidOf(status, headers), says, `${what}: ${link}`)
    if (status !== 200) continue
    const values = JSON.parse(String(headers['x-attribution-values'])) as Record<string, string>
    if (campaign !== undefined) t.equal(values['utm_campaign'], campaign, link)
    // Nothing is repaired: what is missing or wrong is not sent on.
    for (const [, name = ''] of says.matchAll(/(\w+)=(?:missing|format|repeated)/g)) t.notOk(name in values, link)
  }
})

await test('GET /auth/signup/check says the same of each published link, and explains it', async (t) => {
  const { port } = await testServer(t, ALONE)
  for (const { what, link, says } of PUBLISHED_LINKS) {
    if (!link.startsWith('/auth/signup?')) continue
    const { status, headers, json } = await sendTo(port, 'GET', link.replace('?', '/check?'))
    t.equal(saidOf(status, headers), says, what)
    const { parameters } = json as { parameters: { problem?: string; notes: string[]; explanation: string[] }[] }
    for (const { problem, notes, explanation } of parameters) {
      t.equal(explanation.length, notes.length + (problem === undefined ? 0 : 1), what)
    }
  }
})

await test('GET and HEAD of the links that people type, in other letters: 308 to the right path, and counted', async (t) => {
  const { port, opsUrl } = await testServer(t, ALONE)
  for (const [path, right] of [
    ['/AUTH/SIGNUP', '/auth/signup'],
    ['/Auth/Login/', '/auth/login'],
    ['/auth/signup/CHECK', '/auth/signup/check'],
  ] as const) {
    for (const query of ['', '?SIDC=1&a=%2f?b', '?//evil.example']) {
      for (const method of ['GET', 'HEAD']) {
        const { status, headers } = await sendTo(port, method, path + query)
        t.equal(status, 308)
        t.match(headers, { 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' })
        t.equal(headers.location, `${ALONE.PUBLIC_URL}${right}${query}`)
      }
    }
    t.equal((await sendTo(port, 'POST', path)).status, 404)
    const metrics = await (await fetch(`${opsUrl}/metrics`)).text()
    t.match(metrics, `bff_typed_paths_total{path="${right}"} 6`)
  }
  for (const path of ['/AUTH/CALLBACK', '/AUTH/SIGNUP//', '/AUTH/SIGNUPS', '//auth/SIGNUP', '/auth/login/']) {
    t.equal((await sendTo(port, 'GET', path)).status, 404, path)
  }
})

await test('GET and HEAD /auth/signup/: 308 to /auth/signup with the same query', async (t) => {
  const { port } = await testServer(t, ALONE)
  for (const method of ['GET', 'HEAD']) {
    for (const query of ['', `?${LINK}`, '?a=//evil.example&b=%0d%0ax', '?//evil.example']) {
      const { status, headers } = await sendTo(port, method, `/auth/signup/${query}`)
      t.equal(status, 308)
      t.equal(headers.location, `/auth/signup${query}`)
      t.notOk('set-cookie' in headers)
    }
  }
  t.equal((await sendTo(port, 'POST', '/auth/signup/')).status, 405)
})

await test('GET /auth/signup/check: 200 with a page that explains to a partner whether a link is right', async (t) => {
  const { port, log } = await testServer(t, ALONE)
  const check = (query: string, headers: Record<string, string> = {}) =>
    sendTo(port, 'GET', `/auth/signup/check?${query}`, { headers })
  const pageText = async (query: string): Promise<string> => {
    const page = await check(query, NAVIGATION)
    t.equal(page.status, 200)
    t.match(page.headers['content-security-policy'], /^default-src 'none'; style-src 'sha256-/)
    t.equal(page.headers['cache-control'], 'no-store')
    t.notOk('set-cookie' in page.headers)
    t.notMatch(page.text, /<script|<img/)
    return page.text.replaceAll(/<style>.*<\/style>|<[^>]*>/gs, ' ').replaceAll(/\s+/g, ' ')
  }
  const right = await pageText(LINK)
  t.match(right, /This link is complete/)
  t.notMatch(right, /wrong|missing|doubtful/)
  const doubtful = await pageText(`${LINK}?fbclid=x`)
  t.match(doubtful, /This link is complete, but one of its values is probably wrong/)
  t.match(doubtful, /CU12345\?fbclid=x doubtful Something else is appended/)
  const wrong = await pageText(`sidc=x&utm_medium=email&utm_campaign=a+b&return_to=//evil.example`)
  for (const text of [
    'This link is incomplete',
    'x wrong It must be the GUID from your partners dashboard',
    'email wrong It must be the word affiliate',
    'utm_source missing return_to',
    'a b doubtful A + stands for a space.',
    'The value in the link is not a path of this site',
  ]) {
    t.match(wrong, text)
  }
  t.match(await pageText(''), /names no partner/)
  t.match(await pageText(`utm_source=${encodeURIComponent('<img src=x>"&')}`), '&lt;img src=x&gt;&quot;&amp;')
  t.ok((await pageText(`utm_source=${'x'.repeat(10_000)}`)).length < 3000, 'a long value is truncated')

  const { json, headers } = await check(`${LINK}&sidc=y&return_to=/x`)
  t.match(headers, { 'content-type': /^application\/json/, 'x-attribution-problems': 'sidc=repeated' })
  t.match(json, {
    attribution: 'partial',
    parameters: [
      { name: 'sidc', value: /^0f8fad5b-/, problem: 'repeated', notes: { length: 0 } },
      { name: 'utm_campaign', value: 'spring', notes: { length: 0 }, explanation: { length: 0 } },
      {},
      {},
    ],
    return_to: { value: '/x', replaced: false },
  })
  t.equal((await sendTo(port, 'HEAD', '/auth/signup/check')).status, 405)
  t.notOk(log.some(({ level }) => Number(level) >= 40))
})

await test('readAttribution reads any query as URLSearchParams does and never throws', async () => {
  const piece = oneof(
    constantFrom(
      'utm_source=',
      'sidc=',
      '&',
      '&&',
      '=',
      '+',
      '%',
      '%zz',
      '%2',
      'amp;',
      '0f8fad5b-d9cb-469f-a165-70867728950e',
      '?',
      '#',
      'utm_medium=affiliate',
    ),
    string({ maxLength: 5 }),
  )
  assert(
    property(array(piece, { maxLength: 20 }), (pieces) => {
      const query = pieces.join('')
      const { values, parameters } = readAttribution(query)
      const read = new URLSearchParams(query)
      for (const { name, value, problem } of parameters) {
        const all = read.getAll(name)
        if (all[0] !== value) throw new Error(`${name} is ${JSON.stringify(value)}`)
        if ((problem === 'missing') !== (all.length === 0)) throw new Error(name)
        if ((problem === undefined) !== name in values) throw new Error(name)
      }
    }),
    { numRuns: 2000 },
  )
})

for (const name of browsersOr('chrome')) {
  await test(`GET /auth/signup/check: ${name} shows a partner what is wrong with a link`, async (t) => {
    const { url } = await testServer(t, ALONE)
    const page = await (await testWindow(t, name)).newPage()
    await page.goto(`${url}/auth/signup/check?${LINK.replace('affiliate', 'email')}`)
    t.match(await page.evaluate('document.body.innerText'), /incomplete[^]*email[^]*wrong/)
  })
}
