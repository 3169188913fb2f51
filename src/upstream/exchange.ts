import type { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import type { Sent } from './no-response.ts'
import { discard } from './request-body.ts'

/** One request to upstream and its response: the part that does not depend on what happens to the response. */
export abstract class Exchange<Outcome> implements Dispatcher.DispatchHandler {
  readonly #settlement = Promise.withResolvers<Outcome>()
  /** Never rejects. */
  readonly outcome = this.#settlement.promise
  protected controller: Dispatcher.DispatchController | undefined
  protected sent: Sent = 'nothing'
  protected responseBegan = false
  readonly #isConnectionFailing: () => boolean
  #abortReason: Error | undefined
  #queueTimer: NodeJS.Timeout | undefined

  /** @param isConnectionFailing whether a connection is failing now, so that the apparent end of a response is false */
  constructor(isConnectionFailing: () => boolean) {
    this.#isConnectionFailing = isConnectionFailing
  }

  abstract onResponseError(controller: Dispatcher.DispatchController | undefined, cause: Error): void
  protected abstract onComplete(): void

  /**
   * Fails the exchange, before any byte is sent, if no connection becomes free in time. undici cannot remove a request from
   * its queue, so the request is aborted as soon as undici starts it.
   */
  limitQueueing(waitMs: number, body: Readable | Buffer | null): void {
    this.#queueTimer = setTimeout(() => {
      discard(body)
      this.#abortReason = new Error('no connection to upstream became free in time')
      this.onResponseError(undefined, this.#abortReason)
    }, waitMs)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    clearTimeout(this.#queueTimer)
    this.controller = controller
    if (this.#abortReason !== undefined) controller.abort(this.#abortReason)
  }

  onBodySent(): void {
    this.sent = 'part'
  }

  onRequestSent(): void {
    this.sent = 'whole'
  }

  onResponseStarted(): void {
    this.responseBegan = true
  }

  onResponseEnd(): void {
    if (this.#isConnectionFailing()) this.onResponseError(undefined, new Error('the connection was reset'))
    else this.onComplete()
  }

  /** Aborts the request now, or as soon as undici starts it. */
  protected abort(reason: Error): void {
    this.#abortReason = reason
    this.controller?.abort(reason)
  }

  protected settle(outcome: Outcome): void {
    clearTimeout(this.#queueTimer)
    this.#settlement.resolve(outcome)
  }
}
