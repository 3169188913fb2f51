import type { Dispatcher } from 'undici'
import { judgeAfter } from '../time/judge-after.ts'
import type { OverBudget } from './budget/admission.ts'
import { Exchange, NotStarted, type Conditions } from './exchange.ts'
import type { Stale } from './first-byte.ts'
import type { UpstreamHeaders } from './headers.ts'
import { hasResponseBegun, noResponse, type NoResponse, type Sent } from './no-response.ts'
import { BodyRefused } from './request-body.ts'

/** The outcome of a request that was forwarded upstream. */
export type ForwardOutcome =
  /** The whole response was passed on to the browser. */
  | { readonly is: 'answered'; readonly status: number }
  /** The response is not for the browser; nothing has been sent to it. */
  | { readonly is: 'withheld'; readonly status: number; readonly retryAfter?: string }
  | NoResponse
  | OverBudget
  | Stale
  /** Upstream failed in the middle of a response. If the browser had begun to read it, its connection was cut too. */
  | { readonly is: 'cut'; readonly status: number; readonly retryAfter?: string; readonly cause: Error }
  | { readonly is: 'bodyRefused'; readonly problem: Error }
  /** The browser left. `status` is that of upstream's response if the request was allowed to finish, else 0. */
  | { readonly is: 'browserGone'; readonly sent: Sent; readonly status: number; readonly cause?: Error }

/** Where a response goes: a browser, or something that keeps it. The part of a `ServerResponse` that a forwarding uses. */
export interface ResponseSink {
  /** The sink is gone, so nothing can be forwarded. */
  readonly destroyed: boolean
  on(event: 'close', listener: () => void): unknown
  once(event: 'drain', listener: () => void): unknown
  off(event: 'drain', listener: () => void): unknown
  /** Returns false to make upstream wait for `drain`. */
  write(chunk: Buffer): boolean
  /** Called again, without a chunk, after the end of a response whose last chunk was known as such. */
  end(chunk?: Buffer): unknown
  end(text: string, encoding: 'latin1'): unknown
}

/** The request of a forwarding. */
export interface ForwardRequest {
  /** True for GET, which can be aborted without loss. Any other request, once fully sent, is allowed to finish. */
  readonly isSafe: boolean
  readonly response: ResponseSink
  /** Writes status and headers to the browser. Called with the first byte of the body, or at the end if it has none. */
  readonly begin: (status: number, headers: UpstreamHeaders) => void
  /** Breaks off what the browser has begun to read. */
  readonly breakOff: () => void
  /** True for a status that is not passed on. */
  readonly withholds: (status: number) => boolean
  /** The time from the start of the request to the end of the response, however much of it arrives meanwhile. */
  readonly limit?: { readonly ms: number; readonly applies: () => boolean } | undefined
  /** Called once, when upstream's response headers arrive or the request fails without any. */
  readonly onHeadersOrFailure: () => void
}

/** Options that all forwardings of a client share. */
export interface ForwardingOptions {
  /** How long after the first informational response another one may come. */
  readonly headersMs: number
  /** How long a browser that does not read, or a response that nobody gets, may block an upstream connection. */
  readonly stallMs: number
  /** How many more withheld responses may be read to their end: each occupies a connection, and counts as the call of nobody. */
  drainsLeft: number
  /** Called once, when the outcome is known. */
  readonly onSettled: () => void
}

/** A discarded response is read to its end up to this size, so that its connection can be reused. */
const MAX_DRAINED_BYTES = 65_536
/** Up to this size, copying a chunk is cheaper than a second buffer in the write. */
const MAX_TEXT_BYTES = 16_384
/** Informational responses such as 103 are limited because each restarts undici's timeout for the final response. */
const MAX_INFORMATIONAL = 10

/** One exchange with upstream that streams the response to the browser, with backpressure. */
export class Forwarding extends Exchange<ForwardOutcome> {
  readonly #request: ForwardRequest
  readonly #options: ForwardingOptions
  #informationalCount = 0
  /** When the last of them may come (monotonic ms). Undefined until the first one has. */
  #informationalUntil: number | undefined
  /** 0 until the final response headers arrive. */
  #status = 0
  #retryAfter: { readonly retryAfter?: string } = {}
  /** The headers that the browser is still to get. */
  #pendingHeaders: UpstreamHeaders | undefined
  /** Infinity without a Content-Length. */
  #remainingBytes = Infinity
  #drainedBytes = 0
  #isBrowserGone = false
  #isSettled = false
  #isWithheld = false
  /** End the waits, where there are any. */
  #endHeaders: (() => void) | undefined
  #endStall: (() => void) | undefined
  #endLimit: (() => void) | undefined
  #endDrain: (() => void) | undefined
  readonly #resume = (): void => {
    this.#stopWaiting()
    this.controller?.resume()
  }

  constructor(request: ForwardRequest, options: ForwardingOptions, conditions: Conditions) {
    super(conditions)
    this.#request = request
    this.#options = options
    // Never removed: removing a listener costs more than calling one that does nothing.
    request.response.on('close', () => this.#onBrowserGone())
  }

  override onRequestStart(controller: Dispatcher.DispatchController): void {
    super.onRequestStart(controller)
    const { limit } = this.#request
    if (limit === undefined || this.#isSettled) return
    this.#endLimit?.()
    this.#endLimit = judgeAfter(limit.ms, () => {
      if (limit.applies()) this.abort(new DOMException('the response is not complete in time', 'TimeoutError'))
    })
  }

  override onRequestSent(): void {
    super.onRequestSent()
    this.#awaitHeaders()
  }

  /** undici, which has the same limit for what is safe, would judge an order before it has read what has arrived. */
  #awaitHeaders(): void {
    if (this.#request.isSafe || this.#isSettled || this.#status !== 0) return
    this.#endHeaders?.()
    this.#endHeaders = judgeAfter(this.#options.headersMs, () => {
      this.abort(new DOMException('upstream did not respond in time', 'TimeoutError'))
    })
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: UpstreamHeaders): void {
    if (status < 200) return this.#limitInformational(controller)
    this.#endHeaders?.()
    this.#status = this.noteStatus(status, headers)
    this.#request.onHeadersOrFailure()
    if (this.#isBrowserGone) return this.#drain()
    const retryAfter = headers['retry-after']
    if (typeof retryAfter === 'string') this.#retryAfter = { retryAfter }
    if (this.#request.withholds(status)) {
      this.#isWithheld = true
      this.settle({ is: 'withheld', status, ...this.#retryAfter })
      return this.#discard(controller)
    }
    this.#pendingHeaders = headers
    if (status !== this.#status) return this.#endBodiless(controller)
    const length = headers['content-length']
    if (length !== undefined) this.#remainingBytes = Number(length)
  }

  /**
   * A 205 goes on as a 204. Node keeps the headers of one until its end, so if the body that upstream must not send broke off, the
   * browser would get nothing, and send even an order again.
   */
  #endBodiless(controller: Dispatcher.DispatchController): void {
    this.onComplete()
    this.#isWithheld = true
    this.#discard(controller)
  }

  #limitInformational(controller: Dispatcher.DispatchController): void {
    if (this.sent === 'whole') this.#awaitHeaders()
    const now = performance.now()
    this.#informationalUntil ??= now + this.#options.headersMs
    if (++this.#informationalCount > MAX_INFORMATIONAL) return controller.abort(new Error('too many 1xx responses'))
    if (now <= this.#informationalUntil) return
    controller.abort(new DOMException('only informational responses have arrived in time', 'TimeoutError'))
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (!this.#isWithheld && !this.#isBrowserGone) this.#begin()
    // A sink may notice only when the response begins that its browser has gone.
    if (this.#isWithheld || this.#isBrowserGone) {
      this.#drainedBytes += chunk.length
      if (this.#drainedBytes > MAX_DRAINED_BYTES) {
        controller.abort(new Error('the discarded response is too large to read'))
      }
      return
    }
    this.#remainingBytes -= chunk.length
    if (this.#remainingBytes === 0) this.#sendLast(chunk)
    else if (!this.#request.response.write(chunk)) {
      controller.pause()
      this.#waitForBrowser()
    }
  }

  /**
   * Until there is something to go with the headers, the browser can still get a problem. A connection that closes without
   * a byte of a response would make it send even an order again: browsers do that on a connection that they have used before.
   */
  #begin(): void {
    if (this.#pendingHeaders === undefined) return
    this.#request.begin(this.#status, this.#pendingHeaders)
    this.#pendingHeaders = undefined
  }

  /** Sends a small last chunk as latin1 text, which Node joins with the pending headers into one write. */
  #sendLast(chunk: Buffer): void {
    if (chunk.length > MAX_TEXT_BYTES) this.#request.response.end(chunk)
    else this.#request.response.end(chunk.toString('latin1'), 'latin1')
  }

  protected override onComplete(): void {
    this.#endDrain?.()
    if (this.#isBrowserGone) return this.#settleBrowserGone()
    if (this.#isWithheld) return
    this.#begin()
    this.settle({ is: 'answered', status: this.#status })
    this.#request.response.end()
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, cause: Error): void {
    this.#endDrain?.()
    if (this.#isWithheld) return
    if (this.#isBrowserGone) return this.#settleBrowserGone(cause)
    if (this.#status !== 0) {
      this.settle({ is: 'cut', status: this.#status, ...this.#retryAfter, cause })
      if (this.#pendingHeaders === undefined) this.#request.breakOff()
    } else if (cause instanceof NotStarted) this.settle(cause.outcome)
    else if (cause instanceof BodyRefused) this.settle({ is: 'bodyRefused', problem: cause.problem })
    else this.settle(noResponse(cause, this.sent, this.responseBegan || hasResponseBegun(cause)))
  }

  protected override settle(outcome: ForwardOutcome): void {
    if (this.#isSettled) return
    this.#isSettled = true
    super.settle(outcome)
    this.#endHeaders?.()
    this.#endLimit?.()
    if (this.#status === 0) this.#request.onHeadersOrFailure()
    this.#stopWaiting()
    this.#options.onSettled()
  }

  #settleBrowserGone(cause?: Error): void {
    this.settle({ is: 'browserGone', sent: this.sent, status: this.#status, ...(cause && { cause }) })
  }

  #waitForBrowser(): void {
    if (this.#endStall !== undefined) return
    this.#endStall = judgeAfter(this.#options.stallMs, () => this.#onBrowserStalled())
    this.#request.response.once('drain', this.#resume)
  }

  #stopWaiting(): void {
    if (this.#endStall === undefined) return
    this.#endStall()
    this.#endStall = undefined
    this.#request.response.off('drain', this.#resume)
  }

  /** Without this, a browser that never reads could block an upstream connection for good. */
  #onBrowserStalled(): void {
    this.#onBrowserGone()
    this.#request.breakOff()
  }

  #onBrowserGone(): void {
    if (this.#isBrowserGone || this.#isSettled) return
    this.#isBrowserGone = true
    if (this.#request.isSafe || this.sent !== 'whole') {
      this.abort(new Error('the browser left'))
    } else {
      // The response may be paused for the browser, which will never read on.
      this.#resume()
      if (this.#status !== 0) this.#drain()
    }
  }

  /** The call is over, and its user may make the next one. So there is a limit to the connections that are still occupied. */
  #discard(controller: Dispatcher.DispatchController): void {
    const options = this.#options
    if (options.drainsLeft === 0) return controller.abort(new Error('too many discarded responses are being read'))
    this.#drain()
    options.drainsLeft--
    const endDrain = this.#endDrain
    this.#endDrain = () => {
      endDrain?.()
      options.drainsLeft++
    }
  }

  /** Limits the rest of a response that nobody gets. One that trickles in never meets the timeout between pieces. */
  #drain(): void {
    this.#endDrain = judgeAfter(this.#options.stallMs, () => {
      this.abort(new DOMException('the discarded response is not complete in time', 'TimeoutError'))
    })
  }
}
