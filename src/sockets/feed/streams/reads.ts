import type { FeedMetrics } from '../../../telemetry/feed-metrics.ts'
import { CLOSE } from '../../close-codes.ts'
import { AnswerFrame, type FeedRequest, type UpstreamMessage, memoryOf, rateLimitError } from '../wire/index.ts'
import type { Browser, FairShare, Listener, OneShots } from '../upstream/index.ts'

/** A request that upstream has not answered for this long is not shared any more. */
const STALE_MS = 10_000
/** What a waiting browser costs besides the prefix of its answer. */
const BYTES_PER_WAITER = 512
/** The ordinary answers of a few seconds are far smaller. Only browsers that always ask for something else come near it. */
const MAX_KEPT_BYTES = 16 * 1_048_576

/** The answers that a process keeps for others. Together, and with their requests, they take a limited amount of memory. */
export class CacheQuota {
  #bytes = 0

  /**
   * Keeps something for a while, if there is room.
   * @param onOver called when the time is over
   * @returns false when there is no room, so that it must not be kept
   */
  keep(bytes: number, ms: number, onOver: () => void): boolean {
    if (ms === 0 || this.#bytes + bytes > MAX_KEPT_BYTES) return false
    this.#bytes += bytes
    setTimeout(() => {
      this.#bytes -= bytes
      onOver()
    }, ms).unref()
    return true
  }
}

/** Requests with one answer: equal ones share it while it is on its way, and for a moment after that. */
export class Reads {
  readonly #oneShots: OneShots
  readonly #share: FairShare
  readonly #kept: CacheQuota
  readonly #metrics: FeedMetrics
  readonly #shared = new Map<string, Read>()

  constructor(oneShots: OneShots, share: FairShare, kept: CacheQuota, metrics: FeedMetrics) {
    this.#oneShots = oneShots
    this.#share = share
    this.#kept = kept
    this.#metrics = metrics
  }

  /** Answers with what upstream has said to an equal request, or asks. @param keepMs how long the answer is kept; errors never are */
  share(browser: Browser, request: FeedRequest, keepMs: number): void {
    const { key, operation, prefix } = request
    const known = this.#shared.get(key)
    if (known?.isStale === false) {
      this.#metrics.hit(operation)
      return known.add(browser, prefix)
    }
    const drop = (): void => {
      if (this.#shared.get(key) === read) this.#shared.delete(key)
    }
    const bytes = memoryOf(request)
    const read = this.#ask(browser, request, (answer) => {
      if (answer === undefined || !this.#kept.keep(bytes + answer.bytes, keepMs, drop)) drop()
    })
    if (read !== undefined) this.#shared.set(key, read)
  }

  /** Asks for this browser alone. */
  single(browser: Browser, request: FeedRequest): void {
    this.#ask(browser, request, () => undefined)
  }

  /** @param onSettled gets the answer, unless it is an error @returns undefined if a limit forbids it: the browser has been told */
  #ask(browser: Browser, request: FeedRequest, onSettled: (answer: AnswerFrame | undefined) => void): Read | undefined {
    if (!this.#share.admits(browser)) return void browser.answer(rateLimitError(request))
    const arrived = browser.expectAnswer()
    const read = new Read(this.#oneShots, this.#share, (answer) => {
      arrived()
      onSettled(answer)
    })
    read.add(browser, request.prefix)
    this.#oneShots.ask((reqId) => request.toUpstream(reqId), read)
    return read
  }
}

/** One request upstream and the browsers that get its answer. */
class Read implements Listener {
  readonly isAnsweredOnce = true
  readonly #oneShots: OneShots
  readonly #share: FairShare
  readonly #onSettled: (answer: AnswerFrame | undefined) => void
  #waiting: (readonly [Browser, Buffer])[] = []
  #answer: AnswerFrame | undefined
  readonly #staleAt = performance.now() + STALE_MS

  constructor(oneShots: OneShots, share: FairShare, onSettled: (answer: AnswerFrame | undefined) => void) {
    this.#oneShots = oneShots
    this.#share = share
    this.#onSettled = onSettled
  }

  /** Whether upstream has not answered for so long that no further browser is to wait for this answer. */
  get isStale(): boolean {
    return this.#answer === undefined && performance.now() >= this.#staleAt
  }

  /** Gives a browser the answer, now or once it is there. */
  add(browser: Browser, prefix: Buffer): void {
    if (this.#answer !== undefined) return this.#answer.send(browser, prefix)
    this.#waiting.push([browser, prefix])
    browser.awaits(prefix.length + BYTES_PER_WAITER)
  }

  received(message: UpstreamMessage): void {
    if (message.errorCode === 'RateLimit') this.#share.refused()
    const answer = new AnswerFrame(message)
    this.#answer = answer
    for (const [browser, prefix] of this.#takeWaiting()) answer.send(browser, prefix)
    this.#onSettled(message.errorCode === undefined ? answer : undefined)
  }

  tooBig(): void {
    for (const [browser] of this.#takeWaiting()) browser.end(CLOSE.tooBig)
    this.#onSettled(undefined)
  }

  lost(): void {
    for (const [browser] of this.#takeWaiting()) this.#oneShots.depart(browser)
    this.#onSettled(undefined)
  }

  /** A late answer still reaches the browsers that wait for it. It is given up only when there are none. */
  beat(reqId: number): void {
    if (!this.isStale) return
    this.#waiting = this.#waiting.filter(([browser]) => !browser.isOver)
    if (this.#waiting.length > 0) return
    this.#oneShots.connection.release(reqId)
    this.#onSettled(undefined)
  }

  #takeWaiting(): readonly (readonly [Browser, Buffer])[] {
    const waiting = this.#waiting
    this.#waiting = []
    for (const [browser, prefix] of waiting) browser.awaitsNoMore(prefix.length + BYTES_PER_WAITER)
    return waiting
  }
}
