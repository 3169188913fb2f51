import type { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import { discard } from './request-body.ts'

/** What the parts of an exchange are told to. */
type ExchangeHandler = Required<Omit<Dispatcher.DispatchHandler, 'onRequestUpgrade' | 'onResponseError'>> & {
  onResponseError(controller: Dispatcher.DispatchController | undefined, cause: Error): void
}

/**
 * An exchange that waits for one of the connections, all of which are taken. When its time is up it has failed without
 * a byte being sent, and nothing will be: should its turn come all the same, it is let pass.
 */
export class Queued implements Dispatcher.DispatchHandler {
  readonly #handler: ExchangeHandler
  readonly #timer: NodeJS.Timeout
  #isOver = false

  constructor(handler: ExchangeHandler, waitMs: number, body: Readable | Buffer | null) {
    this.#handler = handler
    this.#timer = setTimeout(() => {
      this.#isOver = true
      discard(body)
      handler.onResponseError(undefined, new Error('no connection to upstream became free in time'))
    }, waitMs)
  }

  onRequestStart(controller: Dispatcher.DispatchController, context: unknown): void {
    clearTimeout(this.#timer)
    if (this.#isOver) controller.abort(new Error('it has waited for too long'))
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
    if (!this.#isOver) this.#handler.onResponseError(controller, cause)
  }
}
