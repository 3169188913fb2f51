import type { FeedMetrics } from '../../../telemetry/feed-metrics.ts'
import { CLOSE } from '../../close-codes.ts'
import { AnswerFrame, type FeedRequest, type UpstreamMessage, memoryOf, rateLimitError } from '../wire/index.ts'
import type { Asked, FairShare, OneShots, Sender } from '../upstream/index.ts'
import type { CacheQuota } from './cache-quota.ts'
import type { Browser } from './subscription.ts'

/** A request that upstream has not answered for this long is not shared any more. */
const STALE_MS = 10_000
/** What a waiting browser costs besides the prefix of its answer. */
const BYTES_PER_WAITER = 512

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
    const { key, operation } = request
    const known = this.#shared.get(key)
    if (known?.isStale === false) {
      this.#metrics.hit(operation)
      return known.add(browser, request.prefix)
    }
    const drop = (): void => {
      if (this.#shared.get(key) === read) this.#shared.delete(key)
    }
    if (!this.#admits(browser, request)) return
    const bytes = memoryOf(request)
    const read = this.#start(browser, request, (answer) => {
      if (answer === undefined || !this.#kept.keep(bytes + answer.bytes, keepMs, drop)) drop()
    })
    this.#shared.set(key, read)
  }

  /** Asks for this browser alone. */
  single(browser: Browser, request: FeedRequest): void {
    if (this.#admits(browser, request)) this.#start(browser, request)
  }

  /** Asks for this browser, which gets nothing but what the callback makes of the answer. @returns false if a limit forbids it */
  ask(browser: Browser, request: FeedRequest, onAnswer: (message: UpstreamMessage) => void): boolean {
    const isAdmitted = this.#admits(browser, request)
    if (isAdmitted) this.#start(browser, request, undefined, onAnswer)
    return isAdmitted
  }

  /** Whether the request may go upstream. If not, the browser is told. */
  #admits(browser: Browser, request: FeedRequest): boolean {
    const isAdmitted = this.#share.admits(browser)
    if (!isAdmitted) browser.answer(rateLimitError(request))
    return isAdmitted
  }

  #start(
    browser: Browser,
    request: FeedRequest,
    onSettled: (answer: AnswerFrame | undefined) => void = () => undefined,
    onAnswer?: (message: UpstreamMessage) => void,
  ): Read {
    const arrived = browser.expectAnswer()
    const settled = (answer: AnswerFrame | undefined): void => {
      arrived()
      onSettled(answer)
    }
    const read = new Read(this.#oneShots, settled, onAnswer)
    read.add(browser, request.prefix)
    read.start((reqId) => request.toUpstream(reqId))
    return read
  }
}

/** One request upstream and the browsers that get its answer. */
class Read implements Sender {
  readonly #oneShots: OneShots
  readonly #onSettled: (answer: AnswerFrame | undefined) => void
  readonly #onAnswer: ((message: UpstreamMessage) => void) | undefined
  #waiting: (readonly [Browser, Buffer])[] = []
  #asked: Asked | undefined
  #answer: AnswerFrame | undefined
  readonly #staleAt = performance.now() + STALE_MS

  constructor(
    oneShots: OneShots,
    onSettled: (answer: AnswerFrame | undefined) => void,
    onAnswer: ((message: UpstreamMessage) => void) | undefined,
  ) {
    this.#oneShots = oneShots
    this.#onSettled = onSettled
    this.#onAnswer = onAnswer
  }

  /** Whether upstream has not answered for so long that no further browser is to wait for this answer. */
  get isStale(): boolean {
    return this.#answer === undefined && performance.now() >= this.#staleAt
  }

  start(write: (reqId: number) => Buffer): void {
    this.#asked = this.#oneShots.ask(write, this)
  }

  /** Gives a browser the answer, now or once it is there. */
  add(browser: Browser, prefix: Buffer): void {
    if (this.#answer !== undefined) return this.#answer.send(browser, prefix)
    this.#waiting.push([browser, prefix])
    browser.awaits(prefix.length + BYTES_PER_WAITER)
  }

  received(message: UpstreamMessage): void {
    // The answer may be kept, but the request need not be.
    this.#asked = undefined
    const answer = new AnswerFrame(message)
    this.#answer = answer
    for (const [browser, prefix] of this.#takeWaiting()) {
      if (this.#onAnswer === undefined) answer.send(browser, prefix)
      else this.#onAnswer(message)
    }
    this.#onSettled(message.errorCode === undefined ? answer : undefined)
  }

  tooBig(): void {
    for (const [browser] of this.#waiting) browser.end(CLOSE.tooBig)
    this.#takeWaiting()
    this.#onSettled(undefined)
  }

  lost(): void {
    for (const [browser] of this.#takeWaiting()) this.#oneShots.depart(browser)
    this.#onSettled(undefined)
  }

  #takeWaiting(): readonly (readonly [Browser, Buffer])[] {
    const waiting = this.#waiting
    this.#waiting = []
    for (const [browser, prefix] of waiting) browser.awaitsNoMore(prefix.length + BYTES_PER_WAITER)
    return waiting
  }

  /** A late answer still reaches the browsers that wait for it. It is given up only when there are none. */
  beat(): void {
    if (!this.isStale) return
    this.#waiting = this.#waiting.filter(([browser]) => !browser.isOver)
    if (this.#waiting.length > 0) return
    this.#asked?.cancel()
    this.#onSettled(undefined)
  }
}
