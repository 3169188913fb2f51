import { test } from 'tap'
import { readAttribution } from '../../src/login/attribution.ts'

const SIDC = '0f8fad5b-d9cb-469f-a165-70867728950e'
const LINK = { sidc: SIDC, utm_campaign: 'spring', utm_medium: 'affiliate', utm_source: 'CU12345' }

/** The link with other values, undecoded; undefined leaves a parameter out. */
const queryOf = (changes: Record<string, string | undefined>, more = ''): string =>
  Object.entries({ ...LINK, ...changes })
    .flatMap(([name, value]) => (value === undefined ? [] : [`${name}=${value}`]))
    .join('&') + more

/** How the campaign of such a link was read. */
function campaignOf(value: string | undefined, more = '') {
  const { parameters } = readAttribution(queryOf({ utm_campaign: value }, more))
  const found = parameters.find(({ name }) => name === 'utm_campaign')
  return { value: found?.value, problem: found?.problem, notes: found?.notes }
}

const notesOf = (query: string) => readAttribution(query).parameters[0]?.notes

await test('a link whose four values are right is complete, in whatever order they are', (t) => {
  for (const query of [queryOf({}), queryOf({}).split('&').toReversed().join('&&'), queryOf({}, '&other=1')]) {
    t.same(readAttribution(query), {
      parameters: Object.entries(LINK).map(([name, value]) => ({ name, value, notes: [] })),
      values: LINK,
      outcome: 'complete',
      namesPartner: true,
    })
  }
  const [upper, lower] = [SIDC.toUpperCase(), SIDC]
  for (const sidc of [upper, lower]) t.equal(readAttribution(queryOf({ sidc })).values.sidc, sidc)
  t.end()
})

await test('a link without any of the four names nobody', (t) => {
  for (const query of ['', 'return_to=%2F', 'a=b&c']) {
    const { outcome, values, parameters } = readAttribution(query)
    t.same([outcome, values], ['none', {}])
    t.same(parameters, [
      { name: 'sidc', problem: 'missing', notes: [] },
      { name: 'utm_campaign', problem: 'missing', notes: [] },
      { name: 'utm_medium', problem: 'missing', notes: [] },
      { name: 'utm_source', problem: 'missing', notes: [] },
    ])
  }
  t.end()
})

await test('a value whose form is wrong, or that is there more than once, does not count', (t) => {
  for (const [name, values] of Object.entries({
    sidc: ['', `0${SIDC}`, `${SIDC}0`, SIDC.replace('-', ''), SIDC.replace('0f8', 'g'), SIDC.replace(/-[^-]*$/, '')],
    utm_campaign: ['', 'x'.repeat(129), 'x%0A', '%7F', 'x%00', '%C3%A4'],
    utm_medium: ['', 'Affiliate', 'affiliates', 'an-affiliate'],
    utm_source: ['', 'x'.repeat(129), '%0Ax', 'x%1F'],
  })) {
    for (const value of values) {
      const read = readAttribution(queryOf({ [name]: value }))
      t.equal(read.outcome, 'partial')
      t.notOk(name in read.values)
      t.equal(read.parameters.find((each) => each.name === name)?.problem, 'format', `${name}=${value}`)
      t.equal(read.parameters.find((each) => each.name === name)?.value, decodeURIComponent(value))
    }
  }
  for (const value of ['x'.repeat(128), 'x', '%20~']) t.equal(campaignOf(value).problem, undefined)
  t.equal(readAttribution(queryOf({ utm_source: 'x'.repeat(128) })).outcome, 'complete')
  t.equal(readAttribution(queryOf({ utm_source: 'x' })).outcome, 'complete')
  const twice = readAttribution(queryOf({}, '&utm_source=another'))
  t.equal(twice.outcome, 'partial')
  t.match(twice.parameters[3], { name: 'utm_source', value: 'CU12345', problem: 'repeated' })
  t.same(Object.keys(twice.values), ['sidc', 'utm_campaign', 'utm_medium'])
  t.end()
})

await test('a value has notes on what is probably a mistake in it', (t) => {
  for (const [value, notes] of [
    ['spring', []],
    ['a+b', ['plus']],
    ['a%2Bb', []],
    ['100%', ['escape']],
    ['5%4', ['escape']],
    ['5%4g', ['escape']],
    ['5%aF', []],
    ['a%2520b', ['encoded_twice']],
    ['a%25aFb', ['encoded_twice']],
    ['a%252', []],
    ['%20a', ['space']],
    ['a%20', ['space']],
    ['a?b', ['appended']],
    ['a%26b', ['appended']],
    ['a=b', ['appended']],
    ['a;utm_x=b', ['appended']],
    ['a;amp;x', []],
    ['a;b', []],
    ['"a', ['punctuation']],
    ['a)', ['punctuation']],
    ['/a', ['punctuation']],
    ['.a', ['punctuation']],
    ['%3Ea', ['punctuation']],
    ['a/%20', ['space', 'punctuation']],
    ['a.b', []],
    ['a%22b', []],
    ['%2B%25%20', ['space']],
  ] as const) {
    t.same(campaignOf(value).notes, notes, value)
  }
  t.equal(campaignOf('a+%25zz%').notes?.join(), 'plus,escape', 'in the order of their explanations')
  t.same(readAttribution('&&utm_source=a+b&&&sidc=a').parameters[3]?.notes, ['plus'])
  t.end()
})

await test('a value that nothing has replaced is a placeholder, of whatever kind, and nothing else', (t) => {
  for (const value of [
    '{{campaign.name}}',
    'x{id}y',
    '${id}',
    '[id]',
    '<id>',
    '__CAMPAIGN__',
    '$id$',
    '%%id%%',
    '#a.b-c#',
    '*|ID|*',
    ':id',
    ':a1',
    ':_',
    'null',
    'UNDEFINED',
    'NaN',
  ]) {
    t.same(campaignOf(encodeURIComponent(value)).notes, ['placeholder'], value)
  }
  t.same(campaignOf('%%ab%%').notes, ['placeholder'], 'it may stand there undecoded')
  for (const value of [
    '{}',
    '[]',
    'x[id]',
    '[id]x',
    '<>',
    'x<id>',
    'x__A__',
    '__A__x',
    '$id%%',
    '$id$x',
    'x$id$',
    '*|ID',
    'x*|ID|*',
    '*|ID|*x',
    ':1',
    'a:id',
    ':id!',
    'nullable',
    'xnull',
  ]) {
    t.notOk(campaignOf(encodeURIComponent(value)).notes?.includes('placeholder'), value)
  }
  t.end()
})

await test('for a value that is missing it is said where it has gone', (t) => {
  for (const [more, notes] of [
    ['', []],
    ['&UTM_Campaign=x', ['case']],
    ['&utm-campaign=x', ['name']],
    ['&utm%20campaign=x', ['name']],
    ['&utm--_campaign=x', ['name']],
    ['&amp;utm_campaign=x', ['name']],
    ['&amp%3Butm_campaign=x', ['name']],
    ['&%20%20utm_campaign=x', ['name']],
    ['&utm_campaign%20=x', ['name']],
    ['&utm-campaign=x&UTM_CAMPAIGN=y', ['case']],
    ['&utm_campaigns=x', []],
    ['&xamp;utm_campaign=x', []],
    [`&utm_campaign${'_'.repeat(29)}=x`, []],
    [`&utm_campaign${'_'.repeat(28)}=x`, ['name']],
    ['&next=%2Fx%3Futm_campaign%3Dx', ['inside']],
    ['&next=%2Fx%3FUTM_campaign%253Dx', ['inside']],
    ['&next=a;utm_campaign%3Dx', ['inside']],
    ['&next=utm_campaign%3Dx', ['inside']],
    ['&a%26utm_campaign%3Dx', ['inside']],
    ['&next=my_utm_campaign%3Dx', []],
    ['&next=%2Fx%3Futm_campaign', []],
  ] as const) {
    t.same(campaignOf(undefined, more), { value: undefined, problem: 'missing', notes }, more)
  }
  t.end()
})

await test('where only sidc is left, a program has probably cleaned the link', (t) => {
  t.same(notesOf(`sidc=${SIDC}`), ['cleaned'])
  t.same(notesOf('sidc=x+'), ['plus', 'space', 'cleaned'])
  t.same(notesOf(`sidc=${SIDC}&UTM_SOURCE=x`), [], 'the others have not gone')
  t.same(notesOf(`sidc=${SIDC}&utm_source=x`), [])
  t.same(notesOf('other=x'), [])
  t.same(notesOf(`SIDC=${SIDC}`), ['case'])
  t.end()
})
