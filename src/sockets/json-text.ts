const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
/** A number, true, false or null. */
const SCALAR = /[-+.\w]+/y

/** Deeper requests are left to upstream: a parser there may have a limit of its own. */
const MAX_DEPTH = 32
/** A string, a bracket, a colon or a number. Only to be used on valid JSON text. */
const TOKEN = /"[^"\\]*(?:\\.[^"\\]*)*"|[{}[\]:]|[-\d][-+.\w]*/g

/** Called with the key of a member and where it lies: the member from `start` to `end`, its value from `valueStart`. */
type MemberVisitor = (key: string, start: number, valueStart: number, end: number) => void

/**
 * Visits the members of a JSON object.
 * @param json the object, known to be valid. If it is UTF-8 decoded as Latin-1, places in it are places in the bytes, and only
 *   keys that are ASCII are right
 */
export function eachMember(json: string, visit: MemberVisitor): void {
  let at = afterToken(json, skipSpace(json, 0))
  while (json.charCodeAt(at) === QUOTE) {
    const keyEnd = skipString(json, at)
    const valueStart = afterToken(json, skipSpace(json, keyEnd))
    const end = skipValue(json, valueStart)
    visit(keyOf(json.slice(at, keyEnd)), at, valueStart, end)
    at = afterToken(json, skipSpace(json, end))
  }
}

/** The members of a valid JSON object, each with the text of its value as it is written. Of equal keys the last one counts. */
export function memberTexts(json: string): Map<string, string> {
  const texts = new Map<string, string>()
  eachMember(json, (key, _start, valueStart, end) => texts.set(key, json.slice(valueStart, end)))
  return texts
}

/** The key may be written with escapes. */
function keyOf(token: string): string {
  return token.includes('\\') ? (JSON.parse(token) as string) : token.slice(1, -1)
}

/** Where the next token begins, after the brace, colon or comma at this place. */
function afterToken(json: string, at: number): number {
  return skipSpace(json, at + 1)
}

function skipSpace(json: string, from: number): number {
  let at = from
  for (;;) {
    const code = json.charCodeAt(at)
    if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return at
    at++
  }
}

function skipValue(json: string, start: number): number {
  const first = json.charCodeAt(start)
  if (first === QUOTE) return skipString(json, start)
  if (first === OPEN_BRACE || first === OPEN_BRACKET) return skipNested(json, start)
  SCALAR.lastIndex = start
  SCALAR.test(json)
  return SCALAR.lastIndex
}

function skipString(json: string, start: number): number {
  for (let at = start + 1; ; at++) {
    const code = json.charCodeAt(at)
    if (code === QUOTE) return at + 1
    if (code === BACKSLASH) at++
  }
}

function skipNested(json: string, start: number): number {
  let depth = 0
  for (let at = start; ; at++) {
    const code = json.charCodeAt(at)
    if (code === QUOTE) at = skipString(json, at) - 1
    else if (code === OPEN_BRACE || code === OPEN_BRACKET) depth++
    else if ((code === CLOSE_BRACE || code === CLOSE_BRACKET) && --depth === 0) return at + 1
  }
}

/** Equal for equal JSON values: without white space, with sorted keys, and with one spelling of each string and number. */
export function canonicalText(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  if (Array.isArray(value)) return `[${value.map(canonicalText).join(',')}]`
  const members = Object.entries(value).map(([key, member]) => [key, canonicalText(member)] as const)
  return objectText(members.toSorted(([a], [b]) => (a < b ? -1 : 1)))
}

/** Joins members that are written already to the text of an object. */
export function objectText(members: readonly (readonly [key: string, text: string])[]): string {
  return `{${members.map(([key, text]) => `${JSON.stringify(key)}:${text}`).join(',')}}`
}

/**
 * Whether every parser reads a JSON text alike. Parsers differ in a key that occurs twice in an object, a string with a lone
 * surrogate or U+0000, and more than 32 levels.
 * @param json valid JSON text @param value what JSON.parse has made of it
 */
export function isUnambiguous(json: string, value: unknown): boolean {
  let depth = 0
  let keys = 0
  for (const [token] of json.matchAll(TOKEN)) {
    if (token === '{' || token === '[') depth++
    else if (token === '}' || token === ']') depth--
    else if (token === ':') keys++
    else if (token.startsWith('"') && !isPlainString(token)) return false
    if (depth > MAX_DEPTH) return false
  }
  return keys === countKeys(value)
}

/** Whether JavaScript would print all numbers of a valid JSON text as they are written. Not so 1.10, 1e5, -0 or 1e400. */
export function hasPlainNumbers(json: string): boolean {
  return [...json.matchAll(TOKEN)].every(([token]) => !/^[-\d]/.test(token) || String(Number(token)) === token)
}

function isPlainString(token: string): boolean {
  const text = JSON.parse(token) as string
  return text.isWellFormed() && !text.includes('\0')
}

function countKeys(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  const inner: unknown[] = Object.values(value)
  return inner.reduce<number>((count, each) => count + countKeys(each), Array.isArray(value) ? 0 : inner.length)
}
