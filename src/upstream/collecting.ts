import type { Dispatcher } from 'undici'
import type { UpstreamHeaders } from './headers.ts'
import { noResponse, type NoResponse, type Sent } from './no-response.ts'

/** The whole of a small answer. */
export interface RestResponse {
  readonly status: number
  readonly headers: UpstreamHeaders
  readonly body: Buffer
}

/** How a request whose answer is read whole ended. */
export type FetchOutcome = { readonly is: 'answered'; readonly answer: RestResponse } | NoResponse

const MAX_RESPONSE_BYTES = 65_536

/** One exchange with upstream whose answer this server reads itself: whole, bounded in size and in time. */
export class Collecting implements Dispatcher.DispatchHandler {
  readonly outcome: Promise<FetchOutcome>
  #resolve: (outcome: FetchOutcome) => void = () => undefined
  #controller: Dispatcher.DispatchController | undefined
  #sent: Sent = 'nothing'
  #responseBegan = false
  #status = 0
  #headers: UpstreamHeaders = {}
  readonly #chunks: Buffer[] = []
  #bytes = 0
  #expired: Error | undefined
  readonly #isCut: () => boolean
  readonly #deadline: NodeJS.Timeout
  readonly #signal: AbortSignal | undefined
  readonly #onAbort = (): void => this.#expire()

  /**
   * @param timeoutMs for all of it, the wait for a connection included
   * @param isCut whether what looks like the end of a response is a connection that fails
   * @param signal aborted when nobody wants the answer any more
   */
  constructor(timeoutMs: number, isCut: () => boolean, signal?: AbortSignal) {
    this.#isCut = isCut
    this.outcome = new Promise((resolve) => {
      this.#resolve = resolve
    })
    this.#deadline = setTimeout(() => this.#expire(), timeoutMs)
    this.#signal = signal
    signal?.addEventListener('abort', this.#onAbort)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller
    if (this.#expired !== undefined) controller.abort(this.#expired)
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
    if (this.#bytes > MAX_RESPONSE_BYTES) controller.abort(new Error('the answer is too large'))
    else this.#chunks.push(chunk)
  }

  onResponseEnd(): void {
    if (this.#isCut()) return this.onResponseError(undefined, new Error('the connection was reset'))
    const answer = { status: this.#status, headers: this.#headers, body: Buffer.concat(this.#chunks) }
    this.#settle({ is: 'answered', answer })
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, cause: Error): void {
    this.#settle(noResponse(cause, this.#sent, this.#responseBegan))
  }

  #settle(outcome: FetchOutcome): void {
    clearTimeout(this.#deadline)
    this.#signal?.removeEventListener('abort', this.#onAbort)
    this.#resolve(outcome)
  }

  #expire(): void {
    this.#expired = new DOMException('upstream did not answer in time', 'TimeoutError')
    if (this.#controller === undefined) this.onResponseError(undefined, this.#expired)
    else this.#controller.abort(this.#expired)
  }
}
