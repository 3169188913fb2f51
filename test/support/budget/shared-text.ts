import type { DocumentReading, SharedDocument } from '../../../src/store/shared-document.ts'

/** A store with one document, whose clock a test sets, and which can be away. */
export class SharedText {
  isAway = false
  text = ''
  /** How many changes were written. */
  writes = 0
  #version = 0
  readonly #now: () => number
  readonly #listeners = new Set<() => void>()

  /** @param now the clock of the store */
  constructor(now: () => number) {
    this.#now = now
  }

  /** Opens the document for an instance. */
  open(onChange: () => void): SharedDocument {
    this.#listeners.add(onChange)
    return {
      read: async () => this.read(),
      write: async (version, text) => {
        const isWritten = this.write(version, text)
        if (isWritten) for (const each of this.#listeners) if (each !== onChange) each()
        return isWritten ? String(this.#version) : undefined
      },
      close: () => void this.#listeners.delete(onChange),
    }
  }

  /** @throws Error while it is away */
  read(): DocumentReading {
    if (this.isAway) throw new Error('the store is away')
    return { version: String(this.#version), text: this.text, now: this.#now() }
  }

  /** @throws Error while it is away */
  write(version: string, text: string): boolean {
    if (this.isAway) throw new Error('the store is away')
    if (version !== String(this.#version)) return false
    this.#version++
    this.writes++
    this.text = text
    return true
  }

  /** Loses everything. */
  forget(): void {
    this.text = ''
    this.#version++
    for (const each of this.#listeners) each()
  }
}
