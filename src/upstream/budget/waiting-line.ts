import type { Clock } from './clock.ts'
import type { Token } from './lease.ts'

/** Calls of one class that may wait at the same time. */
const MAX_WAITING = 1024
/**
 * Calls of one subject among them. A user may have fewer in progress, so only one who opens sockets and leaves again and again
 * reaches it: a call stays in line until there is a reply, even when its browser has left.
 */
const MAX_WAITING_OF_SUBJECT = 128

type Resume = (token: Token | undefined) => void

/**
 * The calls that wait for tokens of one class, and until when the ledger has none for them. The calls are served in turns, one
 * of each subject.
 */
export class WaitingLine {
  readonly #clock: Clock
  readonly #bySubject = new Map<string, Resume[]>()
  #length = 0
  #emptyUntil = -Infinity

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get length(): number {
    return this.#length
  }

  /** Until when the ledger has no tokens for the class, by the monotonic clock. */
  get emptyUntil(): number {
    return this.#emptyUntil
  }

  /** For how much longer the ledger has no tokens for the class (ms); 0 or less when it may have some. */
  get emptyMs(): number {
    return this.#emptyUntil - this.#clock.now()
  }

  /** The ledger has replied. @param waitMs for how long it has no more tokens; 0 if it granted all that were asked for */
  noteReply(waitMs: number): void {
    this.#emptyUntil = waitMs > 0 ? this.#clock.now() + waitMs : -Infinity
  }

  /** Whether one more call of this subject may wait. */
  hasRoomFor(subject: string): boolean {
    const ofSubject = this.#bySubject.get(subject)?.length ?? 0
    return this.#length < MAX_WAITING && ofSubject < MAX_WAITING_OF_SUBJECT
  }

  /** Waits for a turn. Resolves with nothing when there is none. */
  wait(subject: string): Promise<Token | undefined> {
    const { promise, resolve } = Promise.withResolvers<Token | undefined>()
    const waiting = this.#bySubject.get(subject)
    if (waiting === undefined) this.#bySubject.set(subject, [resolve])
    else waiting.push(resolve)
    this.#length++
    return promise
  }

  /** Serves round after round, one call of each subject, for as long as `take` has a token for any subject. */
  serve(take: (subject: string) => Token | undefined): void {
    for (let isProgress = true; isProgress;) {
      isProgress = false
      for (const subject of this.#bySubject.keys()) {
        const token = take(subject)
        if (token === undefined) continue
        this.#next(subject)?.(token)
        isProgress = true
      }
    }
  }

  /** Refuses the calls whose subject fits, or all calls. */
  dismiss(fits: (subject: string) => boolean = () => true): void {
    for (const [subject, waiting] of this.#bySubject) {
      if (!fits(subject)) continue
      this.#bySubject.delete(subject)
      this.#length -= waiting.length
      for (const resume of waiting) resume(undefined)
    }
  }

  /** How many calls wait, counting at most `most` of each subject. */
  count(most: (subject: string) => number): number {
    let count = 0
    for (const [subject, { length }] of this.#bySubject) count += Math.max(0, Math.min(length, most(subject)))
    return count
  }

  #next(subject: string): Resume | undefined {
    const waiting = this.#bySubject.get(subject)
    const resume = waiting?.shift()
    if (waiting?.length === 0) this.#bySubject.delete(subject)
    if (resume !== undefined) this.#length--
    return resume
  }
}
