import * as fc from 'fast-check'

/**
 * Requests, each as its members: `key value | key value`. A placeholder is a symbol that differs by member, so that one member
 * has no stream of ticks of a symbol both through `ticks` and through `ticks_history`: whether upstream allows that is not known.
 */
const STREAMS = [
  'ticks "$T0"',
  'ticks "$T0"',
  'ticks "$T1"',
  'ticks ["$T0"]',
  'ticks ["$T0","$T1"]',
  'ticks ["$T1","$T0"]',
  'ticks_history "$H0" | end "latest"',
  'ticks_history "$H0" | end "latest" | count 5 | style "ticks"',
  'ticks_history "$H0" | end "latest" | count 3 | start 1',
  'ticks_history "$H1" | end "latest" | count 2 | adjust_start_time 1',
  'ticks_history "$H1" | end "latest" | count 5',
  'ticks_history "$C0" | end "latest" | count 3 | style "candles"',
  'ticks_history "$C0" | end "latest" | count 2 | style "candles" | granularity 60',
  'ticks_history "$C0" | end "latest" | count 4 | style "candles" | granularity 120',
  'ticks_history "$C1" | end "latest" | count 1 | style "candles" | granularity 60',
].map((stream) => `${stream} | subscribe 1`)

/** Requests that browsers share. */
const READS = [
  'active_symbols "brief"',
  'active_symbols "full"',
  'contracts_for "R_10"',
  'contracts_for "R_50" | currency "USD"',
  'contracts_list 1',
  'trading_times "today"',
  'time 1',
  'ping 1',
  'ticks "R_100"',
  'ticks_history "R_10" | end "latest" | count 4',
  'ticks_history "R_50" | end "latest" | count 2 | style "candles" | granularity 60',
  'ticks_history "R_75" | start 1760000100 | end 1760000500',
]

const PROPOSAL =
  'proposal 1 | amount 10.00 | basis "stake" | contract_type "CALL" | currency "USD" | underlying_symbol "R_100" | duration 5 | duration_unit "t"'

/** Requests for an upstream socket of the browser's own. */
const OWN = ['ticks ["R_10","R_100"]', 'ticks "R_25" | subscribe 0', PROPOSAL, `${PROPOSAL} | subscribe 1`]

/** Requests that upstream refuses, whoever asks. */
const REFUSED = [
  'dance 1',
  'buy "x"',
  'ticks "NONE" | subscribe 1',
  ...['true', '"1"', '2', '1.0', '1e0', 'null', '[1]'].map((subscribe) => `ticks "R_10" | subscribe ${subscribe}`),
  'ticks "R_10" | subscribe 1 | colour "red"',
  'time 1 | ping 1',
  'ticks 5',
  'ticks []',
  'active_symbols "wide"',
  'contracts_for "NONE"',
  'time 2',
  'ping "1"',
  'ticks_history "R_10" | granularity 61 | subscribe 1',
  ...['0', '-3', '1.50', '1e400', '12345678901234567890'].map((count) => `ticks_history "R_10" | count ${count}`),
  'forget 5',
  'forget "x" | why 1',
  'forget_all "nothing"',
  'forget_all ["ticks","nothing"]',
]

const FORGETS = [
  'forget_all "ticks"',
  'forget_all ["ticks"]',
  'forget_all ["candles","ticks"]',
  'forget_all ["candles","proposal"]',
  'forget_all "proposal"',
  'forget_all []',
  'forget "00000000-0000-4000-8000-000000000000"',
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
const ODD_MEMBERS = [
  ...['12345678901234567890', '9007199254740993', '"1"', '1.5', '1.0', '1e3', '-0', 'null', '[1]'].map(
    (value) => `req_id ${value}`,
  ),
  ...['[]', 'null', '"x"', '5'].map((value) => `passthrough ${value}`),
]

const layout = fc.record({ order: fc.nat(1000), spaces: fc.nat(3), escape: fc.option(fc.nat(60), { nil: undefined }) })
type Layout = typeof layout extends fc.Arbitrary<infer Value> ? Value : never

/** Values of a member, which may be absent. */
const maybe = (name: string, values: readonly string[], freq: number): fc.Arbitrary<string> =>
  fc.option(fc.constantFrom(...values.map((value) => ` | ${name} ${value}`)), { nil: '', freq })

const ordinary = (all: readonly string[]): fc.Arbitrary<string> =>
  fc
    .tuple(fc.constantFrom(...all), maybe('req_id', REQ_IDS, 4), maybe('passthrough', PASSTHROUGHS, 1), layout)
    .map(([request, reqId, passthrough, layout]) => written(request + reqId + passthrough, layout))

/** Requests for O_1, which go to a socket of the member's own: with one of the members above, or with a key twice. */
const apart = fc
  .tuple(
    fc.constantFrom(...STREAMS, ...READS, ...OWN),
    fc.option(fc.constantFrom(...ODD_MEMBERS), { nil: undefined, freq: ODD_MEMBERS.length }),
    layout,
  )
  .map(([request, odd, layout]) =>
    written(`${request} | ${odd ?? request.split(' | ', 1)[0]}`, layout).replaceAll(/\$[THC][01]/g, 'O_1'),
  )

/** Texts that a browser may send. */
export const anyText: fc.Arbitrary<string> = fc.oneof(
  { weight: 10, arbitrary: ordinary(STREAMS) },
  { weight: 5, arbitrary: ordinary([...READS, ...OWN.slice(0, 2)]) },
  { weight: 3, arbitrary: ordinary(REFUSED) },
  { weight: 3, arbitrary: ordinary(FORGETS) },
  { weight: 2, arbitrary: ordinary(OWN.slice(2)) },
  { weight: 3, arbitrary: apart },
  { weight: 1, arbitrary: fc.constantFrom(...NO_OBJECTS) },
)

/** Texts without `req_id` that the shared sockets serve. */
export const readText: fc.Arbitrary<string> = fc.constantFrom(...READS).map((request) => written(request))
export const sharedText: fc.Arbitrary<string> = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom(...STREAMS).map((request) => written(request)) },
  { weight: 4, arbitrary: readText },
  { weight: 1, arbitrary: fc.constantFrom(...FORGETS.slice(0, 3)).map((request) => written(request)) },
)

/** Prints an object in another layout: order of keys, white space, one character of a key as an escape. */
export function written(
  request: string,
  { order, spaces, escape }: Layout = { order: 0, spaces: 0, escape: undefined },
) {
  const members = request.split(' | ')
  const shift = order % members.length
  const space = ['', ' ', '\n', '\t '][spaces] ?? ''
  const texts = [...members.slice(shift), ...members.slice(0, shift)].map((member, index) => {
    const end = member.indexOf(' ')
    const [key, value] = [member.slice(0, end), member.slice(end + 1)]
    const at = escape === undefined ? -1 : escape - index * 10
    const escaped = at < 0 ? key : key.slice(0, at) + unicode(key.charAt(at)) + key.slice(at + 1)
    return `${space}"${escaped}"${space}:${space}${value}`
  })
  return `{${texts.join(',')}${space}}`
}

/** The escape of a character; nothing for nothing. */
export function unicode(letter: string): string {
  return letter === '' ? '' : `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`
}
