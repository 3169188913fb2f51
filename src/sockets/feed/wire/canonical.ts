/** The members of a JSON object, each with its canonical text. The keys are decoded: `"tick\u0073"` is `ticks`. */
export type CanonicalMembers = ReadonlyMap<string, string>

/** White space and then a string, a bracket, a separator or a scalar. It finds a token at every place of valid JSON text. */
const TOKEN = /\s*("[^"\\]*(?:\\.[^"\\]*)*"|[{}[\],:]|[^\s{}[\],:"]+)/y

/** Deeper requests are left to upstream: a parser there may have a limit of its own. */
const MAX_DEPTH = 32

/** Thrown and caught in this file alone. */
class NotCanonical extends Error {}

/**
 * Reads valid JSON text whose value is an object. Two objects are equal as JSON values exactly when the texts of their members
 * are equal: white space is gone, keys are sorted and strings have one spelling.
 * @param copied a member that is never compared. Its numbers may be written in any way, and are copied
 * @returns undefined for text whose meaning differs between parsers: a duplicate key at any depth, a number outside `copied` that
 *   JavaScript would print otherwise (1.10, 1e400, 12345678901234567890, -0), a string with a lone surrogate or U+0000, or more
 *   than 32 levels
 */
export function canonicalMembers(json: string, copied?: string): CanonicalMembers | undefined {
  const reader = new CanonicalReader(json, copied)
  try {
    return reader.object()
  } catch (error) {
    if (error instanceof NotCanonical) return undefined
    throw error
  }
}

/** Joins canonical members to the text of an object, in the order in which they come. */
export function objectText(members: Iterable<readonly [key: string, text: string]>): string {
  return `{${Array.from(members, ([key, text]) => `${JSON.stringify(key)}:${text}`).join(',')}}`
}

/** Reads from left to right. It relies on the text being valid. */
class CanonicalReader {
  readonly #json: string
  readonly #copied: string | undefined
  #at = 0
  #depth = 0
  #isCopying = false

  constructor(json: string, copied: string | undefined) {
    this.#json = json
    this.#copied = copied
  }

  /** An object, whose brace comes next. The members are sorted by key. */
  object(): CanonicalMembers {
    const members: [string, string][] = []
    this.#eachUntil('}', (first) => {
      const key = decoded(first)
      this.#next()
      if (this.#depth === 1) this.#isCopying = key === this.#copied
      members.push([key, this.#value(this.#next())])
    })
    members.sort(([a], [b]) => (a < b ? -1 : 1))
    const byKey = new Map(members)
    if (byKey.size !== members.length) throw new NotCanonical()
    return byKey
  }

  #array(): string {
    const items: string[] = []
    this.#eachUntil(']', (first) => items.push(this.#value(first)))
    return `[${items.join(',')}]`
  }

  #value(first: string): string {
    switch (first[0]) {
      case '{':
        this.#at--
        return objectText(this.object())
      case '[':
        this.#at--
        return this.#array()
      case '"':
        return JSON.stringify(decoded(first))
      default:
        return this.#isCopying ? first : scalar(first)
    }
  }

  /** Reads the opening bracket, and calls back with the first token of each element until the closing bracket. */
  #eachUntil(end: string, read: (first: string) => void): void {
    if (++this.#depth > MAX_DEPTH) throw new NotCanonical()
    this.#next()
    for (let token = this.#next(); token !== end; token = this.#next()) read(token === ',' ? this.#next() : token)
    this.#depth--
  }

  #next(): string {
    TOKEN.lastIndex = this.#at
    const [whole, token] = TOKEN.exec(this.#json) ?? []
    if (whole === undefined || token === undefined) throw new NotCanonical()
    this.#at += whole.length
    return token
  }
}

function decoded(token: string): string {
  const text = JSON.parse(token) as string
  if (!text.isWellFormed() || text.includes('\0')) throw new NotCanonical()
  return text
}

function scalar(token: string): string {
  if (token !== 'true' && token !== 'false' && token !== 'null' && String(Number(token)) !== token) {
    throw new NotCanonical()
  }
  return token
}
