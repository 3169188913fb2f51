import type { ServerResponse } from 'node:http'
import type { Dispatcher } from 'undici'
import { BodyTooLarge } from './bounded-body.ts'
import { responseHeaders } from './headers.ts'

/** How one request upstream ended. */
export type ForwardOutcome =
  /** Passed on to the browser, whole. */
  | { readonly is: 'answered'; readonly status: number }
  /** An answer that is not for the browser; nothing has been sent to it. */
  | { readonly is: 'held'; readonly status: number; readonly retryAfter?: string }
  /** No byte of the request was sent. */
  | { readonly is: 'unreachable'; readonly cause: Error }
  /** It was sent, at least in part, and no answer came. */
  | { readonly is: 'lost' | 'timeout'; readonly cause: Error }
  /** Upstream died in the middle of an answer that the browser has begun to read: its connection is cut too. */
  | { readonly is: 'cut'; readonly cause: Error }
  | { readonly is: 'bodyTooLarge' }
  /** The browser left. `status` is upstream's answer to a request that was let finish, 0 without one. */
  | { readonly is: 'browserGone'; readonly status: number }

/** What a forwarding needs to know of its request. */
export interface ForwardRequest {
  /** Nothing is lost when it is broken off: GET. Anything else that was fully sent is let finish. */
  readonly isSafe: boolean
  readonly response: ServerResponse
  readonly ownHeaders: Readonly<Record<string, unknown>>
  /** Called when the answer is about to be written to the browser. */
  readonly onAnswer: () => void
  /** True for statuses that are not passed on. */
  readonly holds: (status: number) => boolean
}

/** An answer that is held back is read to its end up to this size, so that the connection can be used again. */
const MAX_DRAINED_BYTES = 65_536

/** One exchange with upstream: streams the answer to the browser as it comes, with backpressure. */
export class Forwarding implements Dispatcher.DispatchHandler {
  readonly outcome: Promise<ForwardOutcome>
  readonly #request: ForwardRequest
  #settle: (outcome: ForwardOutcome) => void = () => undefined
  #controller: Dispatcher.DispatchController | undefined
  #sentWhole = false
  #status = 0
  #browserGone = false
  #held = false
  #drained = 0
  readonly #onBrowserClose = (): void => this.#browserLeft()

  constructor(request: ForwardRequest) {
    this.#request = request
    this.outcome = new Promise((resolve) => {
      this.#settle = (outcome) => {
        request.response.off('close', this.#onBrowserClose)
        resolve(outcome)
      }
    })
    request.response.once('close', this.#onBrowserClose)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#browserGone) controller.abort(new Error('the browser left'))
  }

  onRequestSent(): void {
    this.#sentWhole = true
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: Readonly<Record<string, string | string[] | undefined>>,
  ): void {
    if (status < 200) return
    this.#status = status
    const { holds, onAnswer, response, ownHeaders } = this.#request
    if (this.#browserGone) return
    if (holds(status)) {
      this.#held = true
      const retryAfter = headers['retry-after']
      this.#settle({ is: 'held', status, ...(typeof retryAfter === 'string' && { retryAfter }) })
      return
    }
    response.on('drain', () => controller.resume())
    onAnswer()
    response.writeHead(status, responseHeaders(headers, ownHeaders))
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#held || this.#browserGone) {
      this.#drained += chunk.length
      if (this.#drained > MAX_DRAINED_BYTES) controller.abort(new Error('more than is worth reading'))
    } else if (!this.#request.response.write(chunk)) {
      controller.pause()
    }
  }

  onResponseEnd(): void {
    if (this.#browserGone) return this.#settle({ is: 'browserGone', status: this.#status })
    if (this.#held) return
    this.#settle({ is: 'answered', status: this.#status })
    this.#request.response.end()
  }

  onResponseError(
    _controller: Dispatcher.DispatchController | undefined,
    cause: Error & { code?: string },
  ): void {
    if (this.#held) return
    if (this.#browserGone) return this.#settle({ is: 'browserGone', status: this.#status })
    if (cause instanceof BodyTooLarge) return this.#settle({ is: 'bodyTooLarge' })
    if (this.#status !== 0) {
      this.#settle({ is: 'cut', cause })
      this.#request.response.destroy()
    } else if (this.#controller === undefined) {
      this.#settle({ is: 'unreachable', cause })
    } else {
      this.#settle({ is: cause.code === 'UND_ERR_HEADERS_TIMEOUT' ? 'timeout' : 'lost', cause })
    }
  }

  #browserLeft(): void {
    this.#browserGone = true
    if (this.#request.isSafe || !this.#sentWhole) this.#controller?.abort(new Error('the browser left'))
  }
}
