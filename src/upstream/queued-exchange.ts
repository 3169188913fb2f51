import type { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import { discard } from './request-body.ts'

type ExchangeHandler = Required<Omit<Dispatcher.DispatchHandler, 'onRequestUpgrade' | 'onResponseError'>> & {
  onResponseError(controller: Dispatcher.DispatchController | undefined, cause: Error): void
}

/**
 * An exchange that waits for a connection because all are in use. If none becomes free in time, the exchange fails
 * without having sent a byte. undici cannot take a request out of its queue, so one that is dispatched after that is
 * aborted before it is sent.
 */
export class QueuedExchange implements Dispatcher.DispatchHandler {
  readonly #handler: ExchangeHandler
  readonly #timer: NodeJS.Timeout
  #hasTimedOut = false

  constructor(handler: ExchangeHandler, waitMs: number, body: Readable | Buffer | null) {
    this.#handler = handler
    this.#timer = setTimeout(() => {
      this.#hasTimedOut = true
      discard(body)
      handler.onResponseError(undefined, new Error('no connection to upstream became free in time'))
    }, waitMs)
  }

  onRequestStart(controller: Dispatcher.DispatchController, context: unknown): void {
    clearTimeout(this.#timer)
    if (this.#hasTimedOut) controller.abort(new Error('the request waited too long for a connection'))
    else this.#handler.onRequestStart(controller, context)
  }

  onBodySent(chunk: Buffer): void {
    this.#handler.onBodySent(chunk)
  }

  onRequestSent(): void {
    this.#handler.onRequestSent()
  }

  onResponseStarted(): void {
    this.#handler.onResponseStarted()
  }

  onResponseStart(...args: Parameters<ExchangeHandler['onResponseStart']>): void {
    this.#handler.onResponseStart(...args)
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#handler.onResponseData(controller, chunk)
  }

  onResponseEnd(...args: Parameters<ExchangeHandler['onResponseEnd']>): void {
    this.#handler.onResponseEnd(...args)
  }

  onResponseError(controller: Dispatcher.DispatchController | undefined, cause: Error): void {
    clearTimeout(this.#timer)
    if (!this.#hasTimedOut) this.#handler.onResponseError(controller, cause)
  }
}
