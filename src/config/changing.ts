/** A value that may change while the server runs. Read it at each use; {@link derived} keeps what is made of it. */
export interface Changing<Value> {
  readonly current: Value
  /** Calls the listener after each change. It must not throw. @returns ends the calls */
  onChange(listener: () => void): () => void
}

/** A value that its owner changes. Others get it as {@link Changing}. */
export class Changeable<Value> implements Changing<Value> {
  #current: Value
  readonly #listeners = new Set<() => void>()

  constructor(value: Value) {
    this.#current = value
  }

  get current(): Value {
    return this.#current
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  change(value: Value): void {
    this.#current = value
    for (const listener of this.#listeners) listener()
  }
}

/** Returns something made of a changing value, which is made again only when the value is another one. */
export function derived<Value, Made>(
  source: Pick<Changing<Value>, 'current'>,
  make: (value: Value) => Made,
): () => Made {
  let from = source.current
  let made = make(from)
  return () => {
    if (from !== source.current) {
      from = source.current
      made = make(from)
    }
    return made
  }
}
