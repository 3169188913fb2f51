import type { Dispatcher } from 'undici'
import { judgeAfter } from '../time/judge-after.ts'
import { Exchange, NotStarted, type Conditions } from './exchange.ts'
import type { UpstreamHeaders } from './headers.ts'
import type { OverBudget } from './budget/admission.ts'
import { noResponse, type NoResponse } from './no-response.ts'

/** A response that was read whole. */
export interface RestResponse {
  readonly status: number
  readonly headers: UpstreamHeaders
  readonly body: Buffer
}

/** The outcome of a request whose response the server reads whole. */
export type FetchOutcome = { readonly is: 'answered'; readonly response: RestResponse } | NoResponse | OverBudget

const MAX_RESPONSE_BYTES = 65_536

/** One exchange with upstream whose response the server reads itself: whole, bounded in size and time. */
export class BufferedExchange extends Exchange<FetchOutcome> {
  #status = 0
  #headers: UpstreamHeaders = {}
  readonly #chunks: Buffer[] = []
  #bytes = 0
  readonly #endWait: () => void
  readonly #signal: AbortSignal | undefined
  readonly #expire = (): void => this.abort(new DOMException('upstream did not respond in time', 'TimeoutError'))

  /**
   * @param timeoutMs covers the whole exchange, including the wait for a connection
   * @param signal aborts the exchange, which then ends like one that timed out
   */
  constructor(timeoutMs: number, conditions: Conditions, signal?: AbortSignal) {
    super(conditions)
    this.#endWait = judgeAfter(timeoutMs, this.#expire)
    this.#signal = signal
    signal?.addEventListener('abort', this.#expire)
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: UpstreamHeaders): void {
    this.#status = this.noteStatus(status, headers)
    this.#headers = headers
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#bytes += chunk.length
    if (this.#bytes > MAX_RESPONSE_BYTES) controller.abort(new Error('the response is too large'))
    else this.#chunks.push(chunk)
  }

  protected override onComplete(): void {
    const response = { status: this.#status, headers: this.#headers, body: Buffer.concat(this.#chunks) }
    this.settle({ is: 'answered', response })
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, cause: Error): void {
    if (cause instanceof NotStarted && cause.outcome.is === 'overBudget') this.settle(cause.outcome)
    else this.settle(noResponse(cause, this.sent, this.responseBegan))
  }

  protected override settle(outcome: FetchOutcome): void {
    this.#endWait()
    this.#signal?.removeEventListener('abort', this.#expire)
    super.settle(outcome)
  }
}
