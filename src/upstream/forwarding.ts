import type { ServerResponse } from 'node:http'
import type { Dispatcher } from 'undici'
import { BodyTooLarge } from './bounded-body.ts'
import type { UpstreamHeaders } from './headers.ts'
import { hasAnswerBegun, noAnswer, type NoAnswer, type Sent } from './no-answer.ts'

/** How one request upstream ended. */
export type ForwardOutcome =
  /** Passed on to the browser, whole. */
  | { readonly is: 'answered'; readonly status: number }
  /** An answer that is not for the browser; nothing has been sent to it. */
  | { readonly is: 'held'; readonly status: number; readonly retryAfter?: string }
  | NoAnswer
  /** Upstream died in the middle of an answer that the browser has begun to read: its connection is cut too. */
  | { readonly is: 'cut'; readonly cause: Error }
  | { readonly is: 'bodyTooLarge' }
  /** The browser left. `status` is upstream's answer to a request that was let finish, 0 without one. */
  | { readonly is: 'browserGone'; readonly sent: Sent; readonly status: number; readonly cause?: Error }

/** What a forwarding needs to know of its request. */
export interface ForwardRequest {
  /** Nothing is lost when it is broken off: GET. Anything else that was fully sent is let finish. */
  readonly isSafe: boolean
  readonly response: ServerResponse
  /** Called when the answer is for the browser: writes its head. */
  readonly begin: (status: number, headers: UpstreamHeaders) => void
  /** True for statuses that are not passed on. */
  readonly holds: (status: number) => boolean
}

/** An answer that nobody reads is read to its end up to this size, so that the connection can be used again. */
const MAX_DRAINED_BYTES = 65_536
/** 103 and the like; each one starts the clock of the final answer anew. */
const MAX_INFORMATIONAL = 10

/** One exchange with upstream: streams the answer to the browser as it comes, with backpressure. */
export class Forwarding implements Dispatcher.DispatchHandler {
  readonly outcome: Promise<ForwardOutcome>
  readonly #to: ForwardRequest
  readonly #stallMs: number
  #resolve: (outcome: ForwardOutcome) => void = () => undefined
  #controller: Dispatcher.DispatchController | undefined
  #sent: Sent = 'nothing'
  #answerBegan = false
  #informational = 0
  #status = 0
  #browserGone = false
  #held = false
  #drained = 0
  #stalled: NodeJS.Timeout | undefined
  readonly #onBrowserClose = (): void => this.#browserLeft()
  readonly #onDrain = (): void => this.#resume()

  /** @param stallMs how long a browser that does not read may keep upstream waiting */
  constructor(to: ForwardRequest, stallMs: number) {
    this.#to = to
    this.#stallMs = stallMs
    this.outcome = new Promise((resolve) => {
      this.#resolve = resolve
    })
    to.response.once('close', this.#onBrowserClose)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#browserGone) controller.abort(new Error('the browser left'))
  }

  onBodySent(): void {
    this.#sent = 'part'
  }

  onRequestSent(): void {
    this.#sent = 'whole'
  }

  onResponseStarted(): void {
    this.#answerBegan = true
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: UpstreamHeaders): void {
    if (status < 200) {
      if (++this.#informational > MAX_INFORMATIONAL) controller.abort(new Error('no end of 1xx answers'))
      return
    }
    this.#status = status
    if (this.#browserGone) return
    const { holds, begin, response } = this.#to
    if (holds(status)) {
      this.#held = true
      const retryAfter = headers['retry-after']
      return this.#settle({ is: 'held', status, ...(typeof retryAfter === 'string' && { retryAfter }) })
    }
    response.on('drain', this.#onDrain)
    begin(status, headers)
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#held || this.#browserGone) {
      this.#drained += chunk.length
      if (this.#drained > MAX_DRAINED_BYTES) controller.abort(new Error('more than is worth reading'))
    } else if (!this.#to.response.write(chunk)) {
      controller.pause()
      this.#stalled ??= setTimeout(() => this.#browserStalled(), this.#stallMs)
    }
  }

  onResponseEnd(): void {
    if (this.#browserGone) return this.#settle(this.#gone())
    if (this.#held) return
    this.#settle({ is: 'answered', status: this.#status })
    this.#to.response.end()
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, cause: Error): void {
    if (this.#held) return
    if (this.#browserGone) return this.#settle(this.#gone(cause))
    if (cause instanceof BodyTooLarge && this.#status === 0) return this.#settle({ is: 'bodyTooLarge' })
    if (this.#status === 0) {
      return this.#settle(noAnswer(cause, this.#sent, this.#answerBegan || hasAnswerBegun(cause)))
    }
    this.#settle({ is: 'cut', cause })
    this.#to.response.destroy()
  }

  #settle(outcome: ForwardOutcome): void {
    this.#to.response.off('close', this.#onBrowserClose).off('drain', this.#onDrain)
    clearTimeout(this.#stalled)
    this.#resolve(outcome)
  }

  #gone(cause?: Error): ForwardOutcome {
    return { is: 'browserGone', sent: this.#sent, status: this.#status, ...(cause && { cause }) }
  }

  #resume(): void {
    clearTimeout(this.#stalled)
    this.#stalled = undefined
    this.#controller?.resume()
  }

  /** One that never reads must not keep a connection to upstream for itself. */
  #browserStalled(): void {
    this.#browserLeft()
    this.#to.response.destroy()
  }

  #browserLeft(): void {
    if (this.#browserGone) return
    this.#browserGone = true
    if (this.#to.isSafe || this.#sent !== 'whole') this.#controller?.abort(new Error('the browser left'))
    // It may be paused for a browser that will never read on.
    else this.#resume()
  }
}
