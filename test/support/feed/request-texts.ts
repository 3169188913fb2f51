import * as fc from 'fast-check'

/** Members of a JSON object as text: keys without quotes, values as JSON. */
type Fields = readonly (readonly [key: string, value: string])[]

/**
 * Names of symbols that differ by member, so that one member has no stream of ticks of a symbol both through `ticks` and
 * through `ticks_history`: whether upstream allows that is not known.
 */
export type Placeholder = '$T0' | '$T1' | '$H0' | '$H1' | '$C0' | '$C1'

const STREAMS: readonly Fields[] = [
  [['ticks', '"$T0"']],
  [['ticks', '"$T0"']],
  [['ticks', '"$T1"']],
  [['ticks', '["$T0"]']],
  [['ticks', '["$T0","$T1"]']],
  [['ticks', '["$T1","$T0"]']],
  [['ticks_history', '"$H0"']],
  history('$H0', '5', ['style', '"ticks"']),
  history('$H0', '3', ['start', '1']),
  history('$H1', '2', ['adjust_start_time', '1']),
  history('$H1', '5'),
  history('$C0', '3', ['style', '"candles"']),
  history('$C0', '2', ['style', '"candles"'], ['granularity', '60']),
  history('$C0', '4', ['style', '"candles"'], ['granularity', '120']),
  history('$C1', '1', ['style', '"candles"'], ['granularity', '60']),
]

const READS: readonly Fields[] = [
  [['active_symbols', '"brief"']],
  [['active_symbols', '"full"']],
  [['contracts_for', '"R_10"']],
  [
    ['contracts_for', '"R_50"'],
    ['currency', '"USD"'],
  ],
  [['contracts_list', '1']],
  [['trading_times', '"today"']],
  [['time', '1']],
  [['ping', '1']],
  [['ticks', '"R_100"']],
  [['ticks', '["R_10","R_100"]']],
  [
    ['ticks', '"R_25"'],
    ['subscribe', '0'],
  ],
  history('R_10', '4'),
  history('R_50', '2', ['style', '"candles"'], ['granularity', '60']),
  [
    ['ticks_history', '"R_75"'],
    ['start', '1760000100'],
    ['end', '1760000500'],
  ],
]

/** Requests that upstream refuses, whoever asks. */
const REFUSED: readonly Fields[] = [
  [['dance', '1']],
  [['buy', '"x"']],
  [
    ['ticks', '"NONE"'],
    ['subscribe', '1'],
  ],
  ...['true', '"1"', '2', '1.0', '1e0', 'null', '[1]'].map((subscribe): Fields => [
    ['ticks', '"R_10"'],
    ['subscribe', subscribe],
  ]),
  [
    ['ticks', '"R_10"'],
    ['subscribe', '1'],
    ['colour', '"red"'],
  ],
  [
    ['time', '1'],
    ['ping', '1'],
  ],
  [['ticks', '5']],
  [['ticks', '[]']],
  [['active_symbols', '"wide"']],
  [['contracts_for', '"NONE"']],
  [['time', '2']],
  [['ping', '"1"']],
  [
    ['ticks_history', '"R_10"'],
    ['granularity', '61'],
    ['subscribe', '1'],
  ],
  ...['0', '-3', '1.50', '1e400', '12345678901234567890'].map((count) => history('R_10', count)),
  [['forget', '5']],
  [
    ['forget', '"x"'],
    ['why', '1'],
  ],
  [['forget_all', '"nothing"']],
  [['forget_all', '["ticks","nothing"]']],
]

const FORGETS: readonly Fields[] = [
  ['forget_all', '"ticks"'],
  ['forget_all', '["ticks"]'],
  ['forget_all', '["ticks","candles"]'],
  ['forget_all', '["candles","proposal"]'],
  ['forget_all', '"proposal"'],
  ['forget_all', '[]'],
  ['forget', '"00000000-0000-4000-8000-000000000000"'],
].map(([key = '', value = '']) => [[key, value]])

const PROPOSAL: Fields = [
  ['proposal', '1'],
  ['amount', '10.00'],
  ['basis', '"stake"'],
  ['contract_type', '"CALL"'],
  ['currency', '"USD"'],
  ['underlying_symbol', '"R_100"'],
  ['duration', '5'],
  ['duration_unit', '"t"'],
]

const NO_OBJECTS = [
  '{',
  '',
  ' ',
  '[]',
  'null',
  '"ticks"',
  '5',
  '{"ticks":"R_10",}',
  '{"time":1}{"time":1}',
  "{'time':1}",
]

const DEEP = `${'{"a":'.repeat(40)}[1,{"req_id":5}]${'}'.repeat(40)}`
const REQ_IDS = ['0', '-5', '1', '1', '2', '3', '9007199254740991', '-9007199254740991']
const PASSTHROUGHS = [
  '{}',
  '{"a":1}',
  '{"__proto__":{"b":[]}}',
  '{"req_id":7,"echo_req":{}}',
  '{"u":"\\u00e9\\"\\\\"}',
  '{"n":1.10}',
  '{"n":1e400}',
  '{"n":[12345678901234567890,-0]}',
  DEEP,
]

/** What the feed must not interpret. The symbol O_1 goes only with these, since such streams are apart. */
const ODD_FIELDS: Fields = [
  ...['12345678901234567890', '9007199254740993', '"1"', '1.5', '1.0', '1e3', '-0', 'null', '[1]'].map(
    (value) => ['req_id', value] as const,
  ),
  ...['[]', 'null', '"x"', '5'].map((value) => ['passthrough', value] as const),
]

const layout = fc.record({ order: fc.nat(1000), spaces: fc.nat(3), escape: fc.option(fc.nat(60), { nil: undefined }) })
type Layout = typeof layout extends fc.Arbitrary<infer Value> ? Value : never

const common: fc.Arbitrary<Fields> = fc
  .tuple(
    fc.option(fc.constantFrom(...REQ_IDS), { nil: undefined, freq: 4 }),
    fc.option(fc.constantFrom(...PASSTHROUGHS), { nil: undefined, freq: 1 }),
  )
  .map(([reqId, passthrough]) => {
    const fields: [string, string][] = []
    if (reqId !== undefined) fields.push(['req_id', reqId])
    if (passthrough !== undefined) fields.push(['passthrough', passthrough])
    return fields
  })

const subscribing = (all: readonly Fields[]): Fields[] => all.map((fields) => [...fields, ['subscribe', '1']])
const ordinary = (all: readonly Fields[]): fc.Arbitrary<string> =>
  fc
    .tuple(fc.constantFrom(...all), common, layout)
    .map(([fields, more, layout]) => written([...fields, ...more], layout))

/** Requests for O_1, which go to a socket of the member's own: with one of the members above, or with a key twice. */
const apart = fc
  .tuple(
    fc.constantFrom(...subscribing(STREAMS), ...READS),
    fc.option(fc.constantFrom(...ODD_FIELDS), { nil: undefined, freq: ODD_FIELDS.length }),
    layout,
  )
  .map(([fields, odd, layout]) =>
    written([...fields, ...(odd === undefined ? fields.slice(0, 1) : [odd])], layout).replaceAll(/\$[THC][01]/g, 'O_1'),
  )

/** Texts that a browser may send. A placeholder stands for a symbol. */
export const requestText: fc.Arbitrary<string> = fc.oneof(
  { weight: 10, arbitrary: ordinary(subscribing(STREAMS)) },
  { weight: 5, arbitrary: ordinary(READS) },
  { weight: 3, arbitrary: ordinary(REFUSED) },
  { weight: 3, arbitrary: ordinary(FORGETS) },
  { weight: 2, arbitrary: ordinary([PROPOSAL, [...PROPOSAL, ['subscribe', '1']]]) },
  { weight: 3, arbitrary: apart },
  { weight: 1, arbitrary: fc.constantFrom(...NO_OBJECTS) },
)

function history(symbol: string, count: string, ...more: Fields): Fields {
  return [['ticks_history', `"${symbol}"`], ['end', '"latest"'], ['count', count], ...more]
}

/** Prints an object in another layout: order of keys, white space, one character of a key as an escape. */
function written(fields: Fields, { order, spaces, escape }: Layout): string {
  const shift = order % fields.length
  const turned = [...fields.slice(shift), ...fields.slice(0, shift)]
  const space = ['', ' ', '\n', '\t '][spaces] ?? ''
  const members = turned.map(([key, value], index) => {
    const at = escape === undefined ? -1 : escape - index * 10
    const escaped = at < 0 ? key : key.slice(0, at) + unicode(key.charAt(at)) + key.slice(at + 1)
    return `${space}"${escaped}"${space}:${space}${value}`
  })
  return `{${members.join(',')}${space}}`
}

/** The escape of a character; nothing for nothing. */
function unicode(letter: string): string {
  return letter === '' ? '' : `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`
}
