import { Window } from '../../../time/window.ts'

/**
 * What an answer counts whose size is not known yet: a long history has as much. The shared connection cannot be paused for one
 * browser, so everything that the browser has asked for arrives, whether it reads or not.
 */
const ANSWER_BYTES = 131_072
/** An upstream that is slower sends no flood. Other messages of the browser, its pings above all, must not wait for it. */
const LONGEST_MS = 3000
/** More messages in a second than any page sends. A browser that sends more is read no faster, so that others have their turn. */
const MESSAGES_PER_SECOND = 200

/** How fast a browser may go. */
export class Pace {
  readonly #requestsPerMinute: number
  readonly #minute = new Window(60_000)
  readonly #second = new Window(1000)
  #timer: NodeJS.Timeout | undefined

  /** @param requestsPerMinute for what goes upstream */
  constructor(requestsPerMinute: number) {
    this.#requestsPerMinute = requestsPerMinute
  }

  /** True while no more messages should be read. */
  get isExceeded(): boolean {
    return this.#timer !== undefined
  }

  /** Counts a request that goes upstream. False when it exceeds the limit of this minute. */
  spend(): boolean {
    return this.#minute.allows(this.#requestsPerMinute)
  }

  /** Counts a message. @returns false when no more should be read until `onReady` is called */
  received(onReady: () => void): boolean {
    if (this.#second.allows(MESSAGES_PER_SECOND)) return true
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      onReady()
    }, this.#second.leftMs)
    return false
  }

  stop(): void {
    clearTimeout(this.#timer)
  }
}

/**
 * Counts an answer that will come as bytes that wait for a browser, so that it is read no further while many are on their way.
 * @returns a function that ends this. After three seconds it ends by itself
 */
export function expectAnswer(member: { awaits(bytes: number): void; awaitsNoMore(bytes: number): void }): () => void {
  member.awaits(ANSWER_BYTES)
  let isExpected = true
  const end = (): void => {
    if (!isExpected) return
    isExpected = false
    clearTimeout(timer)
    member.awaitsNoMore(ANSWER_BYTES)
  }
  const timer = setTimeout(end, LONGEST_MS).unref()
  return end
}
