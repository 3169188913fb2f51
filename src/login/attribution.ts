/** The partner's parameters of a sign-up, in reporting order, with their formats (docs/partners.md). */
const RULES = {
  sidc: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i,
  utm_campaign: /^[\x20-\x7e]{1,128}$/,
  utm_medium: /^affiliate$/,
  utm_source: /^[\x20-\x7e]{1,128}$/,
} as const

const NAMES = Object.keys(RULES) as readonly AttributionName[]

/** One of the four parameters. */
export type AttributionName = keyof typeof RULES

/** The valid parameters of a link. */
export type Attribution = Partial<Record<AttributionName, string>>

/** Why a parameter is ignored. */
export type AttributionProblem = 'missing' | 'repeated' | 'format'

/**
 * A probable mistake that is formally valid. `plus`: a `+`, which means a space; `escape`: a `%` without two hexadecimal
 * digits, which means itself; `encoded_twice`: the decoded value still has escapes; `space`: the value begins or ends
 * with a space; `placeholder`: the value was to be filled in; `name`: another parameter is spelled almost like this one.
 */
export type AttributionNote = 'plus' | 'escape' | 'encoded_twice' | 'space' | 'placeholder' | 'name'

/** Texts of trackers and templates where a value belongs: `{{campaign.name}}`, `${id}`, `[id]`, `<id>`, `__CAMPAIGN__`. */
const PLACEHOLDER = /\{[^{}]+\}|^\[[^[\]]+\]$|^<[^<>]+>$|^__\w+__$/

/** How one parameter of a link was read. */
export interface ParameterReading {
  readonly name: AttributionName
  /** Decoded; the first one if the parameter is repeated. */
  readonly value?: string
  /** Absent if the value is valid. */
  readonly problem?: AttributionProblem
  readonly notes: readonly AttributionNote[]
}

/** How a sign-up link was read. */
export interface AttributionReading {
  readonly parameters: readonly ParameterReading[]
  readonly values: Attribution
  /** `complete`: all four parameters are valid; `none`: all four are missing. */
  readonly outcome: 'complete' | 'partial' | 'none'
}

/**
 * Reads the four parameters of a query and ignores invalid and repeated ones. Values are decoded as by a browser's
 * URLSearchParams; nothing is guessed or repaired.
 * @param query undecoded, without the `?`
 */
export function readAttribution(query: string): AttributionReading {
  const pairs = readPairs(query)
  const similar = new Set(pairs.flatMap(({ name }) => (name in RULES ? [] : simplified(name))))
  const parameters = NAMES.map((name) => readParameter(name, pairs, similar))
  const values: Attribution = {}
  for (const { name, value, problem } of parameters) {
    if (value !== undefined && problem === undefined) values[name] = value
  }
  const isNone = parameters.every(({ problem }) => problem === 'missing')
  const isComplete = parameters.every(({ problem }) => problem === undefined)
  return { parameters, values, outcome: isNone ? 'none' : isComplete ? 'complete' : 'partial' }
}

type Pair = ReturnType<typeof readPairs>[number]

/**
 * The pairs of a query, undecoded (`raw`) and decoded. They match by index: URLSearchParams has one entry per pair that is
 * not empty (WHATWG URL, urlencoded parsing).
 */
function readPairs(query: string) {
  const raws = query.split('&').filter((pair) => pair !== '')
  const decoded = [...new URLSearchParams(query)]
  return decoded.map(([name, value], index) => ({ raw: raws[index] ?? '', name, value }))
}

/** @param similar which of our names some other parameter of the link resembles */
function readParameter(name: AttributionName, pairs: readonly Pair[], similar: ReadonlySet<string>): ParameterReading {
  const [pair, ...more] = pairs.filter((each) => each.name === name)
  if (pair === undefined) {
    return { name, problem: 'missing', notes: similar.has(name) ? ['name'] : [] }
  }
  const { value } = pair
  const notes = notesOn(pair)
  if (more.length > 0) return { name, value, problem: 'repeated', notes }
  return RULES[name].test(value) ? { name, value, notes } : { name, value, problem: 'format', notes }
}

/** Reduces a name that was mistyped, or copied from a page's source, to the correct one: `amp;UTM-Source`. */
function simplified(name: string): string {
  return name
    .toLowerCase()
    .replace(/^(?:amp;|\s)+/, '')
    .replaceAll(/[\s_-]+/g, '_')
    .replace(/_$/, '')
}

function notesOn({ raw: pair, value }: Pair): AttributionNote[] {
  const raw = pair.slice(pair.indexOf('=') + 1)
  const checks: Record<Exclude<AttributionNote, 'name'>, boolean> = {
    plus: raw.includes('+'),
    escape: /%(?![\da-f]{2})/i.test(raw),
    encoded_twice: /%[\da-f]{2}/i.test(value),
    space: value !== value.trim(),
    placeholder: PLACEHOLDER.test(value),
  }
  return (Object.keys(checks) as (keyof typeof checks)[]).filter((note) => checks[note])
}
