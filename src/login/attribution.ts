/** The partner's parameters of a sign-up, in reporting order, with their formats (docs/partners.md). */
const RULES = {
  sidc: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i,
  utm_campaign: /^[\x20-\x7e]{1,128}$/,
  utm_medium: /^affiliate$/,
  utm_source: /^[\x20-\x7e]{1,128}$/,
} as const

const NAMES = Object.keys(RULES) as readonly AttributionName[]

/** Finds a parameter inside another value or name. */
const INSIDE = Object.fromEntries(
  NAMES.map((name) => [name, new RegExp(`(?:^|[?&;])${name}(?:=|%3d)`, 'i')]),
) as Readonly<Record<AttributionName, RegExp>>
/** Names that are shorter or longer are none of ours, however they were mistyped. */
const [SHORTEST_NAME, LONGEST_MISTYPED] = ['sidc'.length, 40]

/** One of the four parameters. */
export type AttributionName = keyof typeof RULES

/** The valid parameters of a link. */
export type Attribution = Partial<Record<AttributionName, string>>

/** Why a parameter is ignored. */
export type AttributionProblem = 'missing' | 'repeated' | 'format'

/**
 * A probable mistake. Of a value: `plus`: a `+`, which means a space; `escape`: a `%` without two hexadecimal digits, which means
 * itself; `encoded_twice`: the decoded value still has escapes; `space`: it begins or ends with a space; `placeholder`: it was to be
 * filled in; `appended`: it has a `?`, `&` or `=`, or another parameter after a `;`; `punctuation`: a quote, a bracket, or what ends
 * a sentence stands at one of its ends; `cleaned`: `sidc` is the only one of the four, as programs that clean links leave it. Of a
 * value that is missing: `case`: the link has the name in capital letters; `name`: almost this name; `inside`: it stands in another
 * value or name.
 */
export type AttributionNote =
  | 'plus'
  | 'escape'
  | 'encoded_twice'
  | 'space'
  | 'placeholder'
  | 'appended'
  | 'punctuation'
  | 'cleaned'
  | 'case'
  | 'name'
  | 'inside'

/**
 * Texts of trackers and templates where a value belongs: `{{campaign.name}}`, `${id}`, `[id]`, `<id>`, `__CAMPAIGN__`, `$id$`,
 * `%%id%%`, `#id#`, `*|ID|*`, `:id`, and what programs write where a value is missing.
 */
const PLACEHOLDER =
  /\{[^{}]+\}|^\[[^[\]]+\]$|^<[^<>]+>$|^__\w+__$|^(\$|%%|#)[\w.-]+\1$|^\*\|[^|]+\|\*$|^:[a-z_]\w*$|^(?:null|undefined|NaN)$/i

/** A second query, or the next parameter, also where `;` stands for `&`. */
const APPENDED = /[?&=]/
/** Quotes, brackets, and what ends a sentence or an address, at the beginning or the end. */
const PUNCTUATION = /^["'«‹»›“”„‘’()<>.,/]|["'«‹»›“”„‘’()<>.,/]$/

/** How one parameter of a link was read. */
export interface ParameterReading {
  readonly name: AttributionName
  /** Decoded; the first one if the parameter is repeated. */
  readonly value?: string
  /** Absent if the value is valid. */
  readonly problem?: AttributionProblem
  readonly notes: AttributionNote[]
}

/** How a sign-up link was read. */
export interface AttributionReading {
  readonly parameters: readonly ParameterReading[]
  readonly values: Attribution
  /** `complete`: all four parameters are valid; `none`: all four are missing. */
  readonly outcome: 'complete' | 'partial' | 'none'
  /**
   * Whether it names a partner, if only in a form that is not read. What stands in `return_to` does not count: there a page puts its
   * own address, which may be that of a partner's link.
   */
  readonly namesPartner: boolean
}

/**
 * Reads the four parameters of a query and ignores invalid and repeated ones. Values are decoded as by a browser's
 * URLSearchParams; nothing is guessed or repaired.
 * @param query undecoded, without the `?`
 */
export function readAttribution(query: string): AttributionReading {
  const pairs = readPairs(query).filter((pair) => NAMES.some((name) => isLike(pair, name)))
  const parameters = NAMES.map((name) => readParameter(name, pairs))
  const [sidc, ...others] = parameters
  if (sidc?.value !== undefined && others.every(({ problem, notes }) => problem === 'missing' && notes.length === 0)) {
    sidc.notes.push('cleaned')
  }
  const values: Attribution = {}
  for (const { name, value, problem } of parameters) {
    if (value !== undefined && problem === undefined) values[name] = value
  }
  const isNone = parameters.every(({ problem }) => problem === 'missing')
  const isComplete = parameters.every(({ problem }) => problem === undefined)
  const namesPartner = pairs.some(({ name }) => name !== 'return_to')
  return { parameters, values, outcome: isNone ? 'none' : isComplete ? 'complete' : 'partial', namesPartner }
}

type Pair = ReturnType<typeof readPairs>[number]

/**
 * The pairs of a query, undecoded (`raw`) and decoded. They match by index: URLSearchParams has one entry per pair that is
 * not empty (WHATWG URL, urlencoded parsing).
 */
function readPairs(query: string) {
  const raws = query.split('&').filter((pair) => pair !== '')
  const decoded = [...new URLSearchParams(query)]
  return decoded.map(([name, value], index) => ({ raw: raws[index] ?? '', name, value, meant: meantName(name) }))
}

function readParameter(name: AttributionName, pairs: readonly Pair[]): ParameterReading {
  const [pair, ...more] = pairs.filter((each) => each.name === name)
  if (pair === undefined) return { name, problem: 'missing', notes: whereIs(name, pairs) }
  const { value } = pair
  const notes = notesOn(pair)
  if (more.length > 0) return { name, value, problem: 'repeated', notes }
  return RULES[name].test(value) ? { name, value, notes } : { name, value, problem: 'format', notes }
}

/** What has become of a parameter that is missing. */
function whereIs(name: AttributionName, pairs: readonly Pair[]): AttributionNote[] {
  const alike = pairs.filter(({ meant }) => meant === name)
  if (alike.some((pair) => pair.name.toLowerCase() === name)) return ['case']
  if (alike.length > 0) return ['name']
  return pairs.some((pair) => isLike(pair, name)) ? ['inside'] : []
}

/** Whether a pair is this parameter, or one that was meant to be it, or holds it. */
function isLike(pair: Pair, name: AttributionName): boolean {
  return pair.meant === name || INSIDE[name].test(pair.name) || INSIDE[name].test(pair.value)
}

/** Reduces a name that was mistyped, or copied from a page's source, to the correct one: `amp;UTM-Source`. */
function meantName(name: string): string {
  if (name.length < SHORTEST_NAME || name.length > LONGEST_MISTYPED) return name
  return name
    .toLowerCase()
    .replace(/^(?:amp;|\s)+/, '')
    .replaceAll(/[\s_-]+/g, '_')
    .replace(/_$/, '')
}

function notesOn({ raw: pair, value }: Pair): AttributionNote[] {
  const raw = pair.slice(pair.indexOf('=') + 1)
  const isPlaceholder = PLACEHOLDER.test(value) || PLACEHOLDER.test(raw)
  const notes: Partial<Record<AttributionNote, boolean>> = {
    plus: raw.includes('+'),
    escape: !isPlaceholder && /%(?![\da-f]{2})/i.test(raw),
    encoded_twice: !isPlaceholder && /%[\da-f]{2}/i.test(value),
    space: value !== value.trim(),
    placeholder: isPlaceholder,
    appended: !isPlaceholder && APPENDED.test(value),
    punctuation: !isPlaceholder && PUNCTUATION.test(value.trim()),
  }
  return (Object.keys(notes) as AttributionNote[]).filter((note) => notes[note])
}
