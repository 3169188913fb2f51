import type { Dispatcher } from 'undici'
import type { UpstreamHeaders } from './headers.ts'
import { noResponse, type NoResponse, type Sent } from './no-response.ts'

/** A response that was read whole. */
export interface RestResponse {
  readonly status: number
  readonly headers: UpstreamHeaders
  readonly body: Buffer
}

/** The outcome of a request whose response the server reads whole. */
export type FetchOutcome = { readonly is: 'answered'; readonly response: RestResponse } | NoResponse

const MAX_RESPONSE_BYTES = 65_536

/** One exchange with upstream whose response the server reads itself: whole, bounded in size and time. */
export class BufferedExchange implements Dispatcher.DispatchHandler {
  readonly outcome: Promise<FetchOutcome>
  #resolve: (outcome: FetchOutcome) => void = () => undefined
  #controller: Dispatcher.DispatchController | undefined
  #sent: Sent = 'nothing'
  #responseBegan = false
  #status = 0
  #headers: UpstreamHeaders = {}
  readonly #chunks: Buffer[] = []
  #bytes = 0
  #timeout: Error | undefined
  readonly #isConnectionFailing: () => boolean
  readonly #timer: NodeJS.Timeout
  readonly #signal: AbortSignal | undefined
  readonly #onAbort = (): void => this.#expire()

  /**
   * @param timeoutMs covers the whole exchange, including the wait for a connection
   * @param isConnectionFailing see ForwardingOptions
   * @param signal aborts the exchange, which then ends like one that timed out
   */
  constructor(timeoutMs: number, isConnectionFailing: () => boolean, signal?: AbortSignal) {
    this.#isConnectionFailing = isConnectionFailing
    this.outcome = new Promise((resolve) => {
      this.#resolve = resolve
    })
    this.#timer = setTimeout(() => this.#expire(), timeoutMs)
    this.#signal = signal
    signal?.addEventListener('abort', this.#onAbort)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#timeout !== undefined) controller.abort(this.#timeout)
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

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: UpstreamHeaders,
  ): void {
    this.#status = status
    this.#headers = headers
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#bytes += chunk.length
    if (this.#bytes > MAX_RESPONSE_BYTES) controller.abort(new Error('the response is too large'))
    else this.#chunks.push(chunk)
  }

  onResponseEnd(): void {
    if (this.#isConnectionFailing()) {
      return this.onResponseError(undefined, new Error('the connection was reset'))
    }
    const response = { status: this.#status, headers: this.#headers, body: Buffer.concat(this.#chunks) }
    this.#settle({ is: 'answered', response })
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, cause: Error): void {
    this.#settle(noResponse(cause, this.#sent, this.#responseBegan))
  }

  #settle(outcome: FetchOutcome): void {
    clearTimeout(this.#timer)
    this.#signal?.removeEventListener('abort', this.#onAbort)
    this.#resolve(outcome)
  }

  #expire(): void {
    this.#timeout = new DOMException('upstream did not respond in time', 'TimeoutError')
    if (this.#controller === undefined) this.onResponseError(undefined, this.#timeout)
    else this.#controller.abort(this.#timeout)
  }
}
