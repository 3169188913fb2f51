import { array, assert, constantFrom, oneof, property, string } from 'fast-check'
import { test } from 'tap'
import { readAttribution } from '../../src/login/attribution.ts'
import { sendTo } from '../support/user.ts'
import { browsersOr, testWindow } from '../support/browser/browsers.ts'
import { ALONE } from '../support/server/settings.ts'
import { testServer } from '../support/server/test-server.ts'

const SIDC = '0f8fad5b-d9cb-469f-a165-70867728950e'
const LINK = `sidc=${SIDC}&utm_campaign=spring&utm_medium=affiliate&utm_source=CU12345`
const NAVIGATION = { accept: 'text/html', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }

await test('HEAD /auth/signup: 200 with notes on suspicious parts of a link, and with the decoded values', async (t) => {
  const { port } = await testServer(t, ALONE)
  const head = async (query: string) => {
    const { status, headers } = await sendTo(port, 'HEAD', `/auth/signup?${query}`)
    t.equal(status, 200)
    return {
      outcome: headers['x-attribution'],
      problems: headers['x-attribution-problems'],
      notes: headers['x-attribution-notes'],
      values: JSON.parse(String(headers['x-attribution-values'])) as Record<string, string>,
    }
  }
  const complete = { outcome: 'complete', problems: undefined }
  t.match(await head(LINK), { ...complete, notes: undefined, values: { utm_source: 'CU12345', sidc: SIDC } })
  const campaigns: [raw: string, value: string, notes: string | undefined][] = [
    ['%zz', '%zz', 'utm_campaign=escape'],
    ['50%', '50%', 'utm_campaign=escape'],
    ['a+b', 'a b', 'utm_campaign=plus'],
    ['a%2Bb', 'a+b', undefined],
    ['a%20b', 'a b', undefined],
    ['a%2520b', 'a%20b', 'utm_campaign=encoded_twice'],
    ['+a', ' a', 'utm_campaign=plus,utm_campaign=space'],
    ['%2C%5C', ',\\', undefined],
    ['%7B%7Bcampaign%7D%7D%3Fx', '{{campaign}}?x', 'utm_campaign=placeholder'],
    ...[
      '$campaign$',
      '*|CAMPAIGN|*',
      '%23campaign%23',
      ':campaign',
      'null',
      'undefined',
      '%25%25name%25%25',
      '%%name%%',
    ].map((raw): [string, string, string] => [
      raw,
      raw.replaceAll('%23', '#').replaceAll('%25', '%'),
      'utm_campaign=placeholder',
    ]),
    ['spring?fbclid=x', 'spring?fbclid=x', 'utm_campaign=appended'],
    ['spring%26x', 'spring&x', 'utm_campaign=appended'],
    ['a%3D1', 'a=1', 'utm_campaign=appended'],
    ['a;amp;utm_x=1', 'a;amp;utm_x=1', 'utm_campaign=appended'],
    ['a;b', 'a;b', undefined],
    ...['%22spring%22', 'spring.', 'spring,', 'spring)', 'spring%3E', 'spring/', "'spring"].map(
      (raw): [string, string, string] => [
        raw,
        raw.replaceAll('%22', '"').replaceAll('%3E', '>'),
        'utm_campaign=punctuation',
      ],
    ),
    ['spring.sale', 'spring.sale', undefined],
    ['%7B%7Bcampaign.name%7D%7D', '{{campaign.name}}', 'utm_campaign=placeholder'],
    ['summer-$%7Bid%7D', 'summer-${id}', 'utm_campaign=placeholder'],
    ['[id]', '[id]', 'utm_campaign=placeholder'],
    ['%3Cid%3E', '<id>', 'utm_campaign=placeholder'],
    ['__CAMPAIGN__', '__CAMPAIGN__', 'utm_campaign=placeholder'],
    ['[DE]%20spring', '[DE] spring', undefined],
    ['%7B%7D', '{}', undefined],
  ]
  for (const [raw, value, notes] of campaigns) {
    const checked = await head(LINK.replace('spring', raw))
    t.match(checked, { ...complete, values: { utm_campaign: value } }, raw)
    t.equal(checked.notes, notes, raw)
  }
  for (const [address, notes] of [
    ['//evil.example', 'return_to=replaced'],
    ['https%3A%2F%2Fevil.example', 'return_to=replaced'],
    ['welcome', 'return_to=replaced'],
    ['/a&return_to=/b', 'return_to=replaced'],
    ['', 'return_to=replaced'],
    ['/', undefined],
    ['%2Fwelcome%3Fa%3D1', undefined],
  ] as const) {
    const checked = await head(`${LINK}&return_to=${address}`)
    t.match(checked, complete)
    t.equal(checked.notes, notes, address)
  }
  for (const name of ['UTM_SOURCE', 'Utm_Source']) {
    const checked = await head(LINK.replace('utm_source', name))
    t.match(checked, { outcome: 'partial', problems: 'utm_source=missing', notes: 'utm_source=case' }, name)
    t.notOk('utm_source' in checked.values, 'a name in other letters is not repaired')
  }
  for (const link of [
    LINK.replace('&utm_source', '%26utm_source'),
    LINK.replace('&utm_source', ';utm_source'),
    `${LINK.replace('&utm_source=CU12345', '')}&return_to=%2Fwelcome%3Fa%3D1%26utm_source%3DCU12345`,
  ]) {
    const checked = await head(link)
    t.match(checked.problems, 'utm_source=missing', link)
    t.match(checked.notes, 'utm_source=inside', link)
  }
  t.match(
    await head(encodeURIComponent(LINK)),
    { outcome: 'none', notes: 'sidc=inside,utm_campaign=inside,utm_medium=inside,utm_source=inside' },
    'a whole query that was encoded once more',
  )
  t.match(await head(`sidc=${SIDC}`), { outcome: 'partial', notes: 'sidc=cleaned' }, 'a link that was cleaned')
  t.match(await head(`sidc=${SIDC}&UTM_SOURCE=a`), { notes: 'utm_source=case' }, 'not a link that was cleaned')
  for (const name of ['utm-source', 'amp;utm_source', 'utm_source%20', '%20utm_source']) {
    const checked = await head(LINK.replace('utm_source', name))
    t.match(checked, { outcome: 'partial', problems: 'utm_source=missing', notes: 'utm_source=name' }, name)
    t.notOk('utm_source' in checked.values, 'a misspelt name is not repaired')
  }
  t.match(await head(LINK.replace(SIDC, 'x')), {
    outcome: 'partial',
    problems: 'sidc=format',
    values: { utm_source: 'CU12345' },
  })
})

await test('GET and HEAD of the links that people type, in other letters: 308 to the right path, and counted', async (t) => {
  const { port, opsUrl } = await testServer(t, ALONE)
  for (const [path, right] of [
    ['/AUTH/SIGNUP', '/auth/signup'],
    ['/Auth/Login', '/auth/login'],
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
  for (const path of ['/AUTH/CALLBACK', '/AUTH/SIGNUP/', '/AUTH/SIGNUPS', '//auth/SIGNUP']) {
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
  t.notMatch(right, /wrong|missing/)
  const wrong = await pageText(`sidc=x&utm_medium=email&utm_campaign=a+b&return_to=//evil.example`)
  for (const text of [
    'This link is incomplete',
    'x wrong It must be the GUID from your partners dashboard',
    'email wrong It must be the word affiliate',
    'utm_source missing return_to',
    'a b right A + stands for a space.',
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
      { name: 'sidc', value: SIDC, problem: 'repeated', notes: { length: 0 } },
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
      SIDC,
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
