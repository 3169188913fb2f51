import type { CloseStatus } from '../../close-codes.ts'
import type { Recipient } from '../wire/index.ts'

/** A browser that asks for something: what it spends, what it waits for, and how it is closed. */
export interface Browser {
  readonly outbox: Recipient
  readonly address: string
  readonly isOver: boolean
  /** Whether a request of it waits for its answer. */
  readonly isWaiting: boolean
  /** Counts a request that goes upstream for this browser. False when it exceeds the limit of this minute. */
  spend(): boolean
  /** Notes that a request waits for its answer, and how many bytes of memory that takes. @returns a function that ends this */
  awaits(bytes: number): () => void
  /** Counts an answer of unknown size that will come. @returns a function that ends this */
  expectAnswer(): () => void
  /** Takes no further message for now. @returns a function that ends the wait */
  hold(): () => void
  /** Whether it may have missed something. It is closed before long. */
  hasMissed: boolean
  end(close: CloseStatus | undefined): void
  /** Ends it after this time. */
  endLater(close: CloseStatus, ms: number): void
}
