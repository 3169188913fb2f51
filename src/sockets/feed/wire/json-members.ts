const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
/** A number, true, false or null. */
const SCALAR = /[-+.\w]+/y

/** Called with the key of a member and where it lies: the member from `start` to `end`, its value from `valueStart`. */
export type MemberVisitor = (key: string, start: number, valueStart: number, end: number) => void

/**
 * Visits the members of a JSON object.
 * @param json the object, known to be valid. It is UTF-8 decoded as Latin-1, so that places in it are places in the bytes;
 *   keys are right if they are ASCII
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
