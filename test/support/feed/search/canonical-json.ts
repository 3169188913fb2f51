/** The members of a JSON object: their values as text. */
export type Members = ReadonlyMap<string, string>

/**
 * A JSON text in the one form that all equal values share: keys sorted, no white space, strings escaped as JSON.stringify
 * does. Numbers stay as they are written, so `1.10` and `1.1` differ.
 */
export class CanonicalJson {
  readonly #tokens: readonly string[]
  readonly #isUnique: boolean
  #next = 0

  private constructor(text: string, isUnique: boolean) {
    // Rejects what the tokens alone would not.
    JSON.parse(text)
    this.#isUnique = isUnique
    this.#tokens = text.match(/"(?:[^"\\]|\\.)*"|[{}[\]:,]|[^\s{}[\]:,"]+/gs) ?? []
  }

  /** The top-level members by their keys. @throws Error if the text is not an object, or has a key twice anywhere */
  static members(text: string): Members {
    const parser = new CanonicalJson(text, true)
    if (parser.#take() !== '{') throw new Error(`not an object: ${text}`)
    return parser.#members()
  }

  /** The canonical form. Of a key that occurs twice the last one counts, as in JSON.parse. @throws Error if it is no JSON */
  static of(text: string): string {
    return new CanonicalJson(text, false).#value()
  }

  #take(): string {
    return this.#tokens[this.#next++] ?? ''
  }

  #value(): string {
    const token = this.#take()
    if (token === '{') return printed(this.#members())
    if (token === '[') return this.#array()
    return token.startsWith('"') ? JSON.stringify(JSON.parse(token)) : token
  }

  #members(): Map<string, string> {
    const members = new Map<string, string>()
    let token = this.#take()
    while (token !== '}') {
      const key = JSON.parse(token) as string
      if (this.#isUnique && members.has(key)) throw new Error(`twice in a message: ${key}`)
      this.#take()
      members.set(key, this.#value())
      token = this.#take()
      if (token === ',') token = this.#take()
    }
    return members
  }

  #array(): string {
    const items: string[] = []
    while (this.#tokens[this.#next] !== ']') {
      items.push(this.#value())
      if (this.#tokens[this.#next] === ',') this.#next++
    }
    this.#next++
    return `[${items.join(',')}]`
  }
}

/** Prints members with their keys in order. */
export function printed(members: Members): string {
  const sorted = [...members].toSorted(([one], [other]) => (one < other ? -1 : 1))
  return `{${sorted.map(([key, value]) => `${JSON.stringify(key)}:${value}`).join(',')}}`
}
