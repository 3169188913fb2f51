import type { DocumentReading, SharedDocument } from '../../../src/store/shared-document.ts'
import { SharedState } from '../../../src/store/shared-state.ts'

/** The text that all instances of a test write, and who asks for it. */
export class Paper {
  version = ''
  text = ''
  now = 5000
  reads: (string | undefined)[] = []
  writes: string[] = []
  ttlMs: number | undefined
  isAway = false
  isClosed = false
  /** Called before each read is answered, and before each write. */
  before: () => void = () => undefined

  put(text: string): void {
    this.text = text
    this.version += 'v'
  }

  /** The document, as an instance opens it. */
  open(): SharedDocument {
    return {
      read: async (known): Promise<DocumentReading> => {
        this.reads.push(known)
        await Promise.resolve()
        this.before()
        if (this.isAway) throw new Error('away')
        const text = known !== undefined && known !== '' && known === this.version ? undefined : this.text
        return { version: this.version, text, now: this.now }
      },
      write: async (version, text, ttlMs) => {
        this.ttlMs = ttlMs
        this.writes.push(text)
        this.before()
        if (version !== this.version) return undefined
        this.put(text)
        return this.version
      },
      close: () => (this.isClosed = true),
    }
  }
}

/** The form of a count. What the store has counts. */
export const COUNT = { nothing: 0, parse: Number, format: String, ttlMs: 1000 }

/** The greater count of two counts. An instance writes again what it has and the store has lost, or what is not of today. */
export const KEPT = {
  ...COUNT,
  upkeep: { merge: (own: number, read: number) => Math.max(own, read), isOutdated: () => false },
}

/** A state of an instance that shares it, and how often it had news. */
export function shared(paper: Paper, form: ConstructorParameters<typeof SharedState<number>>[0] = COUNT) {
  const news = { count: 0 }
  return { state: new SharedState<number>(form, () => news.count++, paper.open()), news }
}
