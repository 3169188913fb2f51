import { CLOSE } from '../../close-codes.ts'
import type { AnswerFrame, FeedRequest, UpstreamMessage } from '../wire/index.ts'
import type { Browser, FairShare, Listener, OneShots, WriteRequest } from '../upstream/index.ts'

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

/** What shared answers work with. */
export interface AnswerContext {
  readonly oneShots: OneShots
  readonly fairShare: FairShare
  readonly kept: CacheQuota
}

/** A browser that waits for an answer. */
interface Waiter {
  readonly browser: Browser
  /** What the answer begins with. */
  readonly prefix: Buffer
}

/** What passes an answer on. */
interface AnswerOwner<W extends Waiter> {
  /** How long a request that upstream does not answer is shared. */
  readonly staleMs: number
  /** Upstream has answered. */
  answered(answer: SharedAnswer<W>, message: UpstreamMessage): void
  /** A browser that has waited gets no answer, and has been told. */
  lost(waiter: W): void
  /** No further browser is given it. */
  letGo(answer: SharedAnswer<W>): void
}

/** A request that goes upstream once, and the browsers that get its answer: those who wait for it, and others for a while. */
export class SharedAnswer<W extends Waiter> implements Listener {
  readonly isAnsweredOnce = true
  readonly request: FeedRequest
  readonly waiting = new Set<W>()
  readonly #keepMs: number
  readonly #context: AnswerContext
  readonly #owner: AnswerOwner<W>
  readonly #staleAt: number
  #phase: 'asked' | 'kept' | 'ended' = 'asked'
  #frame: AnswerFrame | undefined

  /** @param keepMs how long further browsers are given the answer */
  constructor(request: FeedRequest, keepMs: number, context: AnswerContext, owner: AnswerOwner<W>) {
    this.request = request
    this.#keepMs = keepMs
    this.#context = context
    this.#owner = owner
    this.#staleAt = performance.now() + owner.staleMs
  }

  /** Whether upstream has not answered for so long that no further browser is to wait for the answer. */
  get isStale(): boolean {
    return this.#phase === 'asked' && performance.now() >= this.#staleAt
  }

  /** Whether further browsers may be given it. */
  get isShared(): boolean {
    return this.#phase === 'kept' || (this.#phase === 'asked' && !this.isStale)
  }

  /** Whether a browser waits for it or may be given it. */
  get isUsed(): boolean {
    return this.#phase !== 'ended' || this.waiting.size > 0
  }

  ask(write: WriteRequest): void {
    this.#context.oneShots.ask(write, this)
  }

  /** The answer has come. Its owner sends it to those who wait, and then keeps or ends it. */
  take(frame: AnswerFrame): void {
    this.#phase = 'kept'
    this.#frame = frame
  }

  /** Sends it, if it is there. @returns whether it is */
  send({ browser, prefix }: Waiter): boolean {
    this.#frame?.send(browser.outbox, prefix)
    return this.#frame !== undefined
  }

  /** Gives it to browsers that ask the same a moment later, as pages do that are loaded at the same time. */
  keep(): void {
    const bytes = this.request.memoryBytes + (this.#frame?.bytes ?? 0)
    if (!this.#context.kept.keep(bytes, this.#keepMs, () => this.end())) this.end()
  }

  /** No further browser is given it. */
  end(): void {
    this.#phase = 'ended'
    this.#frame = undefined
    this.#owner.letGo(this)
  }

  /** @returns those who have waited until now */
  takeWaiting(): W[] {
    const all = [...this.waiting]
    this.waiting.clear()
    return all
  }

  received(message: UpstreamMessage): void {
    if (message.errorCode === 'RateLimit') this.#context.fairShare.refused()
    this.#owner.answered(this, message)
  }

  tooBig(): void {
    this.#lose((browser) => browser.end(CLOSE.tooBig))
  }

  lost(): void {
    this.#lose((browser) => this.#context.oneShots.outage.depart(browser))
  }

  /** A late answer still reaches the browsers that wait for it. It is given up only when there are none. */
  beat(reqId: number): void {
    if (!this.isStale) return
    for (const waiter of this.waiting) if (waiter.browser.isOver) this.waiting.delete(waiter)
    if (this.waiting.size > 0) return
    this.#context.oneShots.connection.release(reqId)
    this.end()
  }

  #lose(tell: (browser: Browser) => void): void {
    const waiting = this.takeWaiting()
    this.end()
    for (const waiter of waiting) {
      tell(waiter.browser)
      this.#owner.lost(waiter)
    }
  }
}
