import type { FastifyReply } from 'fastify'
import { test } from 'tap'
import { announceLink, checkLink, linkDocument, linkPage } from '../../src/login/link-check.ts'

const FRONTEND = 'https://app.example'
const SIDC = '0f8fad5b-d9cb-469f-a165-70867728950e'
const VALUES = { sidc: SIDC, utm_campaign: 'spring', utm_medium: 'affiliate', utm_source: 'CU12345' }
const COMPLETE = new URLSearchParams(VALUES).toString()
const UNTRACKED = 'sign-ups that come through it are not tracked.'

interface Document {
  attribution: string
  verdict: string
  parameters: { name: string; value?: string; problem?: string; notes: string[]; explanation: string[] }[]
  return_to: { value: string; replaced: boolean }
}

const documentOf = (query: string): Document => linkDocument(checkLink(query, FRONTEND)) as Document
const pageOf = (query: string): string => linkPage(checkLink(query, FRONTEND)).text.replaceAll(/\s+/g, ' ')
const queryWith = (changes: Record<string, string>): string => new URLSearchParams({ ...VALUES, ...changes }).toString()
const explained = (query: string): string[] => documentOf(query).parameters.flatMap(({ explanation }) => explanation)
const shown = (length: number) => documentOf(queryWith({ utm_source: 'x'.repeat(length) })).parameters[3]?.value

/** The headers of the report on a link. */
function headersOf(query: string): Record<string, string> {
  const headers: Record<string, string> = {}
  const reply = { header: (name: string, value: string) => void (headers[name] = value) }
  announceLink(reply as unknown as FastifyReply, checkLink(query, FRONTEND))
  return headers
}

await test('headers say what has become of a link, what is wrong, and what is doubtful', (t) => {
  t.same(headersOf(COMPLETE), { 'x-attribution': 'complete' })
  t.same(headersOf(''), { 'x-attribution': 'none' })
  t.same(headersOf('UTM_SOURCE=x'), { 'x-attribution': 'none', 'x-attribution-notes': 'utm_source=case' })
  t.same(headersOf(`${queryWith({ sidc: 'x', utm_medium: ' ' })}&utm_source=y`), {
    'x-attribution': 'partial',
    'x-attribution-problems': 'sidc=format,utm_medium=format,utm_source=repeated',
    'x-attribution-notes': 'utm_medium=plus,utm_medium=space',
  })
  t.same(headersOf(queryWith({ return_to: '//evil', utm_source: 'a.' })), {
    'x-attribution': 'complete',
    'x-attribution-notes': 'utm_source=punctuation,return_to=replaced',
  })
  t.end()
})

await test('a path of this site is where new users return to, and anything else is replaced', (t) => {
  for (const [query, value, replaced] of [
    ['', '/', false],
    ['return_to=%2F', '/', false],
    ['return_to=%2Fwelcome', '/welcome', false],
    ['return_to=x', '/', true],
    ['return_to=', '/', true],
    ['return_to=%2Fa&return_to=%2Fb', '/', true],
  ] as const) {
    t.same(checkLink(query, FRONTEND).returnTo, value)
    t.same(documentOf(query).return_to, { value, replaced })
    const page = pageOf(query)
    t.equal(page.includes('not a path of this site, so new users see the start page'), replaced)
    t.ok(page.includes(`<dd><code>${value}</code>${replaced ? '<p>' : '</dd>'}`))
  }
  t.end()
})

await test('a document for scripts has the verdict, and each parameter with what is wrong', (t) => {
  const right = 'This link is complete: sign-ups that come through it are sent on with your four values.'
  t.same(documentOf(COMPLETE), {
    attribution: 'complete',
    verdict: right,
    parameters: Object.entries(VALUES).map(([name, value]) => {
      return { name, value, problem: undefined, notes: [], explanation: [] }
    }),
    return_to: { value: '/', replaced: false },
  })
  t.equal(documentOf('').verdict, `This link names no partner: ${UNTRACKED}`)
  t.equal(documentOf('sidc=x').verdict, `This link is incomplete: ${UNTRACKED}`)
  const doubtful =
    'This link is complete, but one of its values is probably wrong, and sign-ups are sent on with the values as they stand here.'
  t.equal(documentOf(queryWith({ utm_source: 'a.' })).verdict, doubtful)
  t.equal(documentOf(queryWith({ utm_source: 'a.', sidc: '' })).verdict, `This link is incomplete: ${UNTRACKED}`)
  t.end()
})

await test('what is wrong with a parameter is explained', (t) => {
  t.same(
    explained(''),
    Array.from({ length: 4 }, () => 'It is missing.'),
  )
  t.same(explained(queryWith({ sidc: '', utm_campaign: '', utm_medium: '', utm_source: '' })), [
    `It must be the GUID from your partners dashboard, without braces, such as ${SIDC}.`,
    'It must be 1 to 128 printable ASCII characters.',
    'It must be the word affiliate, in lower case.',
    'It must be your affiliate id, 1 to 128 printable ASCII characters.',
  ])
  t.same(explained(`${COMPLETE}&sidc=x`), ['It is in the link more than once, so none of its values counts.'])
  t.end()
})

await test('what is doubtful in a parameter is explained', (t) => {
  const without = COMPLETE.replace(/&utm_source=.*/, '')
  for (const [query, note, text] of [
    [
      `${without}&utm_source=a%2Bb+c`,
      'plus',
      'A + stands for a space. Write %2B for a plus sign, and %20 for a space.',
    ],
    [
      `${without}&utm_source=5%`,
      'escape',
      'A % is not followed by two hexadecimal digits. Write %25 for a percent sign.',
    ],
    [`${without}&utm_source=a%2520`, 'encoded_twice', 'encoded twice: it still has escapes after decoding.'],
    [`${without}&utm_source=%20a`, 'space', 'It begins or ends with a space.'],
    [`${without}&utm_source={id}`, 'placeholder', 'It looks like a placeholder that nothing has replaced.'],
    [
      `${without}&utm_source=a=b`,
      'appended',
      'Something else is appended to it: a second ? or & or =, or a ; in place of an &.',
    ],
    [
      `${without}&utm_source=a,`,
      'punctuation',
      'A quote, a bracket, a dot, a comma or a slash stands at one of its ends.',
    ],
    [`sidc=${SIDC}`, 'cleaned', 'It is the only one of the four. Programs that clean links remove the other three'],
    [`${without}&UTM_SOURCE=a`, 'case', 'The link has this name in capital letters. Write it in lower case.'],
    [`${without}&utm-source=a`, 'name', 'The link has a parameter with almost the same name.'],
    [`${without}&x=%26utm_source%3Da`, 'inside', 'The link has it inside another value: it was encoded once more'],
  ] as const) {
    const found = documentOf(query).parameters.find(({ notes }) => notes.some((each) => each === note))
    t.equal(found?.explanation.filter((each) => each.includes(text)).length, 1, note)
  }
  t.end()
})

await test('a page for partners shows each value and its verdict', (t) => {
  t.match(pageOf(COMPLETE), /<h1>Your sign-up link<\/h1> <p>This link is complete: /)
  for (const [query, row] of [
    [COMPLETE, '<dt><code>utm_source</code></dt> <dd> <code>CU12345</code> <strong class="right">right</strong> </dd>'],
    ['', '<dt><code>sidc</code></dt> <dd> <strong class="missing">missing</strong> </dd>'],
    [
      'UTM_SOURCE=x',
      '<dd> <strong class="missing">missing</strong> <p>The link has this name in capital letters. Write it in lower case.</p> </dd>',
    ],
    [
      queryWith({ utm_source: 'a.' }),
      '<code>a.</code> <strong class="doubtful">doubtful</strong> <p>A quote, a bracket, a dot, a comma or a slash stands at one',
    ],
    [
      queryWith({ utm_medium: '<x>' }),
      '<code>&lt;x&gt;</code> <strong class="wrong">wrong</strong> <p>It must be the word affiliate, in lower case.</p>',
    ],
    [COMPLETE, 'This checks only the form of the values: only your partners dashboard knows whether an id is yours.'],
  ] as const) {
    t.ok(pageOf(query).includes(row), row)
  }
  t.end()
})

await test('a long value is shown in part', (t) => {
  t.equal(shown(200), 'x'.repeat(200))
  t.equal(shown(201), `${'x'.repeat(200)}…`)
  t.end()
})
