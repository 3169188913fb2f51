import type { ServerResponse } from 'node:http'
import type { Dispatcher } from 'undici'
import type { Problem } from '../problem.ts'
import type { UpstreamHeaders } from './headers.ts'
import { hasResponseBegun, noResponse, type NoResponse, type Sent } from './no-response.ts'
import { BodyRefused } from './request-body.ts'

/** How one request upstream ended. */
export type ForwardOutcome =
  /** Passed on to the browser, whole. */
  | { readonly is: 'answered'; readonly status: number }
  /** An answer that is not for the browser; nothing has been sent to it. */
  | { readonly is: 'withheld'; readonly status: number; readonly retryAfter?: string }
  | NoResponse
  /** Upstream died in the middle of an answer that the browser has begun to read: its connection is cut too. */
  | { readonly is: 'cut'; readonly cause: Error }
  | { readonly is: 'bodyRefused'; readonly problem: Problem }
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
  readonly withholds: (status: number) => boolean
  /** Called once: when the head of the answer has come, or when none will. */
  readonly waited: () => void
}

/** What the connections tell a forwarding. */
export interface ForwardingOptions {
  /** How long a browser that does not read may keep upstream waiting. */
  readonly stallMs: number
  /** Called once: it withholds no connection any more. */
  readonly onSettled: () => void
  /** Whether what looks like the end of a response is a connection that fails. */
  readonly isCut: () => boolean
}

/** An answer that nobody reads is read to its end up to this size, so that the connection can be used again. */
const MAX_DRAINED_BYTES = 65_536
/** Copying as much is cheaper than a second buffer in the write. */
const MAX_TEXT_BYTES = 16_384
/** 103 and the like; each one starts the clock of the final answer anew. */
const MAX_INFORMATIONAL = 10

/** One exchange with upstream: streams the answer to the browser as it comes, with backpressure. */
export class Forwarding implements Dispatcher.DispatchHandler {
  readonly outcome: Promise<ForwardOutcome>
  readonly #to: ForwardRequest
  readonly #options: ForwardingOptions
  #resolve: (outcome: ForwardOutcome) => void = () => undefined
  #controller: Dispatcher.DispatchController | undefined
  #sent: Sent = 'nothing'
  #responseBegan = false
  #informational = 0
  #status = 0
  /** Bytes of the answer's body still to come; Infinity where its head does not tell. */
  #left = Infinity
  #browserGone = false
  #isSettled = false
  #isWithheld = false
  #drained = 0
  #stalled: NodeJS.Timeout | undefined
  readonly #onDrain = (): void => this.#resume()

  constructor(to: ForwardRequest, options: ForwardingOptions) {
    this.#to = to
    this.#options = options
    this.outcome = new Promise((resolve) => {
      this.#resolve = resolve
    })
    // Left there when all is done: taking a listener off costs more than one that does nothing.
    to.response.on('close', () => this.#browserLeft())
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
    this.#responseBegan = true
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: UpstreamHeaders): void {
    if (status < 200) {
      if (++this.#informational > MAX_INFORMATIONAL) controller.abort(new Error('no end of 1xx answers'))
      return
    }
    this.#status = status
    this.#to.waited()
    if (this.#browserGone) return
    const { withholds, begin } = this.#to
    if (withholds(status)) {
      this.#isWithheld = true
      const retryAfter = headers['retry-after']
      return this.#settle({ is: 'withheld', status, ...(typeof retryAfter === 'string' && { retryAfter }) })
    }
    begin(status, headers)
    const length = headers['content-length']
    if (length !== undefined) this.#left = Number(length)
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#isWithheld || this.#browserGone) {
      this.#drained += chunk.length
      if (this.#drained > MAX_DRAINED_BYTES) controller.abort(new Error('more than is worth reading'))
      return
    }
    this.#left -= chunk.length
    if (this.#left === 0) this.#sendLast(chunk)
    else if (!this.#to.response.write(chunk)) {
      controller.pause()
      this.#waitForBrowser()
    }
  }

  /** Text of one byte a character leaves in one write with what is waiting: the head of a small answer, most of all. */
  #sendLast(chunk: Buffer): void {
    if (chunk.length > MAX_TEXT_BYTES) this.#to.response.end(chunk)
    else this.#to.response.end(chunk.toString('latin1'), 'latin1')
  }

  onResponseEnd(): void {
    if (this.#options.isCut()) return this.onResponseError(undefined, new Error('the connection was reset'))
    if (this.#browserGone) return this.#settle(this.#gone())
    if (this.#isWithheld) return
    this.#settle({ is: 'answered', status: this.#status })
    this.#to.response.end()
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, cause: Error): void {
    if (this.#isWithheld) return
    if (this.#browserGone) return this.#settle(this.#gone(cause))
    if (cause instanceof BodyRefused && this.#status === 0) {
      return this.#settle({ is: 'bodyRefused', problem: cause.problem })
    }
    if (this.#status === 0) {
      return this.#settle(noResponse(cause, this.#sent, this.#responseBegan || hasResponseBegun(cause)))
    }
    this.#settle({ is: 'cut', cause })
    this.#to.response.destroy()
  }

  #settle(outcome: ForwardOutcome): void {
    if (this.#isSettled) return
    this.#isSettled = true
    if (this.#status === 0) this.#to.waited()
    this.#stopWaiting()
    this.#options.onSettled()
    this.#resolve(outcome)
  }

  #gone(cause?: Error): ForwardOutcome {
    return { is: 'browserGone', sent: this.#sent, status: this.#status, ...(cause && { cause }) }
  }

  #waitForBrowser(): void {
    if (this.#stalled !== undefined) return
    this.#stalled = setTimeout(() => this.#browserStalled(), this.#options.stallMs)
    this.#to.response.once('drain', this.#onDrain)
  }

  #resume(): void {
    this.#stopWaiting()
    this.#controller?.resume()
  }

  #stopWaiting(): void {
    if (this.#stalled === undefined) return
    clearTimeout(this.#stalled)
    this.#stalled = undefined
    this.#to.response.off('drain', this.#onDrain)
  }

  /** One that never reads must not keep a connection to upstream for itself. */
  #browserStalled(): void {
    this.#browserLeft()
    this.#to.response.destroy()
  }

  #browserLeft(): void {
    if (this.#browserGone || this.#isSettled) return
    this.#browserGone = true
    if (this.#to.isSafe || this.#sent !== 'whole') this.#controller?.abort(new Error('the browser left'))
    // It may be paused for a browser that will never read on.
    else this.#resume()
  }
}
