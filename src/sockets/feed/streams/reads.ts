import type { FeedMetrics } from '../../../telemetry/feed-metrics.ts'
import { AnswerFrame, type FeedRequest, type UpstreamMessage, rateLimitError } from '../wire/index.ts'
import type { Browser } from '../upstream/index.ts'
import { SharedAnswer, type AnswerContext } from './shared-answer.ts'

/** What a waiting browser costs besides the prefix of its answer. */
const BYTES_PER_READER = 512

/** A browser that waits for the answer to a read. */
interface Reader {
  readonly browser: Browser
  readonly prefix: Buffer
  /** Counts it as waiting no more. */
  readonly done: () => void
}

/** Requests with one answer: equal ones share it while it is on its way, and for a moment after that. */
export class Reads {
  readonly staleMs = 10_000
  readonly #context: AnswerContext
  readonly #metrics: FeedMetrics
  readonly #shared = new Map<string, SharedAnswer<Reader>>()

  constructor(context: AnswerContext, metrics: FeedMetrics) {
    this.#context = context
    this.#metrics = metrics
  }

  /** Answers with what upstream has said to an equal request, or asks. @param keepMs how long the answer is kept; errors never are */
  share(browser: Browser, request: FeedRequest, keepMs: number): void {
    const { key, operation, prefix } = request
    const known = this.#shared.get(key)
    if (known?.isShared === true) {
      this.#metrics.hit(operation)
      return this.#add(known, browser, prefix)
    }
    const answer = this.#ask(browser, request, keepMs)
    if (answer !== undefined) this.#shared.set(key, answer)
  }

  /** Asks for this browser alone. */
  single(browser: Browser, request: FeedRequest): void {
    this.#ask(browser, request, 0)
  }

  answered(answer: SharedAnswer<Reader>, message: UpstreamMessage): void {
    answer.take(new AnswerFrame(message))
    for (const reader of answer.takeWaiting()) {
      reader.done()
      answer.send(reader)
    }
    if (message.errorCode === undefined) answer.keep()
    else answer.end()
  }

  lost({ done }: Reader): void {
    done()
  }

  letGo(answer: SharedAnswer<Reader>): void {
    const { key } = answer.request
    if (this.#shared.get(key) === answer) this.#shared.delete(key)
  }

  /** @returns undefined if a limit forbids it: the browser has been told */
  #ask(browser: Browser, request: FeedRequest, keepMs: number): SharedAnswer<Reader> | undefined {
    if (!this.#context.fairShare.admits(browser)) return void browser.outbox.answer(rateLimitError(request))
    const arrived = browser.expectAnswer()
    const answer = new SharedAnswer<Reader>(request, keepMs, this.#context, this)
    this.#add(answer, browser, request.prefix, arrived)
    answer.ask((reqId) => request.toUpstream(reqId))
    return answer
  }

  /** Gives a browser the answer, now or once it is there. */
  #add(answer: SharedAnswer<Reader>, browser: Browser, prefix: Buffer, arrived?: () => void): void {
    if (answer.send({ browser, prefix })) return
    const answered = browser.awaits(prefix.length + BYTES_PER_READER)
    const done = (): void => {
      answered()
      arrived?.()
    }
    answer.waiting.add({ browser, prefix, done })
  }
}
