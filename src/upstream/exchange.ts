import type { Readable } from 'node:stream'
import type { Dispatcher } from 'undici'
import type { OverBudget, Reservation } from './budget/admission.ts'
import type { FirstByte, Stale } from './first-byte.ts'
import type { UpstreamHeaders } from './headers.ts'
import type { Sent } from './no-response.ts'
import type { Span } from '../telemetry/traces/span.ts'
import { judgeAfter } from '../time/judge-after.ts'
import { discard } from './request-body.ts'

/** Defined here, so that no exchange has a function of its own for what it does not need. */
const ignore = (): void => undefined

/** Aborts a request that must not be written when a connection has become free. */
export class NotStarted extends Error {
  readonly outcome: OverBudget | Stale

  constructor(outcome: OverBudget | Stale) {
    super(outcome.is === 'stale' ? 'the request is no longer wanted' : 'the budget of calls is used up')
    this.name = 'NotStarted'
    this.outcome = outcome
  }
}

/** The outcomes in which upstream, or a browser, has left a request without its end. */
const FAILURES: ReadonlySet<string> = new Set([
  'unreachable',
  'lost',
  'timeout',
  'cut',
  'browserGone',
  'overBudget',
  'stale',
  'bodyRefused',
])

/** To a page both say the same, but only a 204 is free of a body for certain: a 205 of upstream may have one against RFC 9110 §15.3.6. */
const [NO_CONTENT, RESET_CONTENT] = [204, 205]

/** What decides at the last moment whether a request is written, and whether its response is whole. */
export interface Conditions {
  /** The token of the request, where there is a budget. */
  readonly reservation?: Reservation | undefined
  /** Asked when a connection is free, and the request is written next. */
  readonly firstByte: FirstByte
  /** The span of the request. */
  readonly span: Span
  /** Whether a connection is failing now, so that the apparent end of a response is false. */
  readonly isConnectionFailing: () => boolean
}

/** One request to upstream and its response: the part that does not depend on what happens to the response. */
export abstract class Exchange<Outcome extends { readonly is: string }> implements Dispatcher.DispatchHandler {
  readonly #settlement = Promise.withResolvers<Outcome>()
  /** Never rejects. */
  readonly outcome = this.#settlement.promise
  protected controller: Dispatcher.DispatchController | undefined
  protected sent: Sent = 'nothing'
  protected responseBegan = false
  readonly #conditions: Conditions
  #abortReason: Error | undefined
  #endQueueing = ignore
  /** Undefined until upstream responds. */
  #status: number | undefined

  constructor(conditions: Conditions) {
    this.#conditions = conditions
  }

  abstract onResponseError(controller: Dispatcher.DispatchController | undefined, cause: Error): void
  protected abstract onComplete(): void

  /**
   * Fails the exchange, before any byte is sent, if no connection becomes free in time.
   * @param leave removes it from those that wait, once it is started or over
   */
  limitQueueing(waitMs: number, body: Readable | Buffer | null, leave: () => void): void {
    const endWait = judgeAfter(waitMs, () => {
      discard(body)
      this.abort(new Error('no connection to upstream became free in time'))
    })
    this.#endQueueing = () => {
      endWait()
      leave()
    }
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#endQueueing()
    this.controller = controller
    if (this.#abortReason !== undefined) return controller.abort(this.#abortReason)
    const refused = this.#conditions.firstByte.refusal()
    if (refused !== undefined) controller.abort(new NotStarted(refused))
  }

  /** Upstream's status and headers have arrived. @returns the status that goes on */
  protected noteStatus(status: number, headers: UpstreamHeaders): number {
    this.#status = status
    this.#conditions.reservation?.answered(status, headers['retry-after'])
    return status === RESET_CONTENT ? NO_CONTENT : status
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
    if (this.#conditions.isConnectionFailing()) this.onResponseError(undefined, new Error('the connection was reset'))
    else this.onComplete()
  }

  /** Aborts the request now. undici may have it already, and does so when it starts it. */
  protected abort(reason: Error): void {
    this.#abortReason = reason
    if (this.controller === undefined) this.onResponseError(undefined, reason)
    else this.controller.abort(reason)
  }

  protected settle(outcome: Outcome): void {
    // Before anything that may fail: nothing else ends the wait for it.
    this.#settlement.resolve(outcome)
    this.#endQueueing()
    const { reservation, span } = this.#conditions
    reservation?.end()
    span.end({ status: this.#status, error: FAILURES.has(outcome.is) ? outcome.is : undefined })
  }
}
