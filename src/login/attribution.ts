/** The partner's parameters of a sign-up, in the order they are reported, and what each must be (docs/partners.md). */
const RULES = {
  sidc: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i,
  utm_campaign: /^[\x20-\x7e]{1,128}$/,
  utm_medium: /^affiliate$/,
  utm_source: /^[\x20-\x7e]{1,128}$/,
} as const

const NAMES = Object.keys(RULES) as readonly AttributionName[]

/** One of the four parameters. */
export type AttributionName = keyof typeof RULES

/** The valid values of a link. */
export type Attribution = Partial<Record<AttributionName, string>>

/** Why a parameter does not count. */
export type AttributionProblem = 'missing' | 'repeated' | 'format'

/**
 * What is valid and yet hardly meant. `plus`: a `+`, which stands for a space; `escape`: a `%` without two hexadecimal digits,
 * which stands for itself; `encoded_twice`: escapes are left in the value; `space`: it begins or ends with one; `name`: a
 * parameter that is spelled almost like it.
 */
export type AttributionNote = 'plus' | 'escape' | 'encoded_twice' | 'space' | 'name'

/** What a link says of one parameter. */
export interface ParameterReading {
  readonly name: AttributionName
  /** Decoded; the first, where there are several. */
  readonly value?: string
  /** Absent: the value counts. */
  readonly problem?: AttributionProblem
  readonly notes: readonly AttributionNote[]
}

/** What a sign-up link carries. */
export interface AttributionReading {
  readonly parameters: readonly ParameterReading[]
  readonly values: Attribution
  /** `complete`: all four are there and valid; `none`: not one is there. */
  readonly outcome: 'complete' | 'partial' | 'none'
}

/**
 * Reads the four parameters of a query; a bad or repeated one does not count. Nothing is guessed or repaired: what a
 * browser's URLSearchParams makes of the query is the value.
 * @param query as it came, without the `?`
 */
export function readAttribution(query: string): AttributionReading {
  const pairs = readPairs(query)
  const parameters = NAMES.map((name) => readParameter(name, pairs))
  const values: Attribution = {}
  for (const { name, value, problem } of parameters) {
    if (value !== undefined && problem === undefined) values[name] = value
  }
  const isNone = parameters.every(({ problem }) => problem === 'missing')
  const isComplete = parameters.every(({ problem }) => problem === undefined)
  return { parameters, values, outcome: isNone ? 'none' : isComplete ? 'complete' : 'partial' }
}

/** One pair of a query, as it came and decoded. */
interface Pair {
  readonly raw: string
  readonly name: string
  readonly value: string
}

/** In one pass: URLSearchParams makes one entry of each pair that is not empty (WHATWG URL, urlencoded parsing). */
function readPairs(query: string): Pair[] {
  const raws = query.split('&').filter((pair) => pair !== '')
  return [...new URLSearchParams(query)].map(([name, value], index) => ({
    raw: raws[index] ?? '',
    name,
    value,
  }))
}

function readParameter(name: AttributionName, pairs: readonly Pair[]): ParameterReading {
  const [pair, ...more] = pairs.filter((each) => each.name === name)
  if (pair === undefined) {
    const hasSimilar = pairs.some((each) => each.name !== name && simplified(each.name) === name)
    return { name, problem: 'missing', notes: hasSimilar ? ['name'] : [] }
  }
  const { value } = pair
  const notes = notesOn(pair)
  if (more.length > 0) return { name, value, problem: 'repeated', notes }
  return RULES[name].test(value) ? { name, value, notes } : { name, value, problem: 'format', notes }
}

/** As somebody may have mistyped it, or copied it from the source of a page: `amp;UTM-Source`. */
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
  }
  return (Object.keys(checks) as (keyof typeof checks)[]).filter((note) => checks[note])
}
