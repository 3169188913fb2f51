import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { backoffMs } from '../time/backoff.ts'
import { Problem } from '../problem.ts'
import { beforeDeadline, CommandTimeout } from '../time/deadline.ts'
import { sharedResponseKey } from '../store/keys.ts'
import { PendingWrites } from '../store/pending-writes.ts'
import { StoreUnavailable } from '../store/store.ts'
import { standstill } from '../time/standstill.ts'
import type { OverBudget } from '../upstream/budget/admission.ts'
import type { FetchOutcome } from '../upstream/buffered-exchange.ts'
import { USER_AGENT, type UpstreamHeaders } from '../upstream/headers.ts'
import { failedBeforeResponse, type NoResponse } from '../upstream/no-response.ts'
import type { CallDependencies } from './call.ts'
import type { Endpoint } from './endpoint.ts'
import { sendAnswer } from './idempotency/repeat-call.ts'
import { isWithheld, upstreamOutcome, upstreamProblem } from './upstream-problem.ts'
import { storeNow } from '../time/store-time.ts'

/** Requests that may wait for the shared response. The bound is needed because a client can send them without a login. */
const MAX_WAITING = 512
/** The first pause of a request that waits for another instance; each further one is twice as long. */
const POLL_MS = 100
/** How long the store may take for each step: a request that needs upstream alone waits no longer for a store that is silent. */
const STORE_MS = 500
/** A response that would count for longer than HEALTH_SECONDS and this is of an instance whose clock is wrong. */
const MAX_CLOCK_SKEW_MS = 5000
/** Stands for the holder's secret of the envelope, since a shared response belongs to no session. */
const NO_HOLDER = 'shared response'

/** How a request ended. Failures are shared too, or a crowd of browsers would hammer a service in trouble. */
type Outcome =
  | {
      readonly is: 'answered'
      readonly status: number
      readonly headers: UpstreamHeaders
      /** Base64. */
      readonly body: string
    }
  | { readonly is: 'withheld'; readonly status: number; readonly retryAfter?: string }
  /** The cause is known to the instance that asked, and logged there. */
  | { readonly is: NoResponse['is']; readonly cause?: Error }
  | OverBudget

interface Shared {
  readonly outcome: Outcome
  /** Until then no instance asks upstream again: in the store by its clock (epoch ms), here by the clock of {@link standstill}. */
  readonly freshUntil: number
}

/** The right to ask upstream for all instances. */
interface Claim {
  readonly id: string
  /** By how much the store's clock is ahead of that of {@link standstill}. */
  readonly storeAheadMs: number
}

/**
 * The response of an endpoint that is the same for all users. All instances together ask upstream at most once in
 * HEALTH_SECONDS (twice if the first connection fails before a response), one request at a time, however many browsers call. The browser's query is dropped, because every new query
 * would need a request of its own.
 */
export class SharedResponse {
  readonly #endpoint: Endpoint
  readonly #deps: CallDependencies
  readonly #key: string
  /** Claims to give back. */
  readonly #pending: PendingWrites
  #last: Shared | undefined
  /** While another instance asks upstream, this one reads the store again no sooner. */
  #pollAt = 0
  #refreshing: Promise<Shared> | undefined
  #waiting = 0

  constructor(endpoint: Endpoint, deps: CallDependencies) {
    this.#endpoint = endpoint
    this.#deps = deps
    this.#key = sharedResponseKey(endpoint.path)
    this.#pending = new PendingWrites(deps.store)
  }

  /** Sends the shared response; the first request after it went stale refreshes it and waits. @throws Problem */
  async send(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const { outcome } = await this.#current(request.id)
    if (outcome.is !== 'answered') throw upstreamProblem(failure(outcome), true)
    const body = Buffer.from(outcome.body, 'base64')
    sendAnswer(reply, { ...outcome, body }, this.#deps.upstream.budget !== undefined)
  }

  async #current(requestId: string): Promise<Shared> {
    const last = this.#last
    if (last !== undefined && standstill.now() < Math.max(last.freshUntil, this.#pollAt)) return last
    if (this.#refreshing === undefined) {
      this.#refreshing = this.#refresh(requestId).finally(() => (this.#refreshing = undefined))
      return this.#refreshing
    }
    if (last !== undefined && this.#isRecent(last)) return last
    if (this.#waiting >= MAX_WAITING) throw new Problem('rate_limited', { retryAfterSeconds: 1 })
    this.#waiting++
    return this.#refreshing.finally(() => this.#waiting--)
  }

  /** Whether a stale response is good enough while its successor is on the way. */
  #isRecent({ freshUntil }: Shared): boolean {
    return standstill.now() < freshUntil + this.#deps.upstream.healthMs
  }

  /**
   * The instance that creates the record asks upstream; the others wait until the record holds the response. They read the store
   * ever more rarely, since a stranger may send such a request as often as they like.
   */
  async #refresh(requestId: string): Promise<Shared> {
    const { store, upstream } = this.#deps
    const timeoutMs = upstream.headersMs
    const giveUpAt = standstill.now() + timeoutMs
    const id = randomUUID()
    try {
      for (let reads = 0; ; reads++) {
        const { value: text, now } = await beforeDeadline(STORE_MS, store.readMarked(this.#key, ''))
        const storeAheadMs = now - standstill.now()
        // The lock outlives the request, so that no instance starts a second one meanwhile.
        const lock = (): Promise<boolean> => store.lock(this.#key, id, timeoutMs + POLL_MS)
        if (text === undefined && (await beforeDeadline(STORE_MS, lock()))) {
          return await this.#ask(requestId, { id, storeAheadMs })
        }
        const shared = text === undefined ? undefined : await beforeDeadline(STORE_MS, this.#open(text, storeAheadMs))
        if (shared !== undefined) return (this.#last = shared)
        if (this.#last !== undefined && this.#isRecent(this.#last)) {
          this.#pollAt = standstill.now() + POLL_MS
          return this.#last
        }
        const leftMs = giveUpAt - standstill.now()
        if (leftMs <= 0) return { outcome: { is: 'timeout' }, freshUntil: 0 }
        await delay(Math.min(backoffMs(reads, { firstMs: POLL_MS, longestMs: Infinity }), leftMs))
      }
    } catch (error) {
      if (!(error instanceof StoreUnavailable || error instanceof CommandTimeout)) throw error
      // It may have the claim, and not have heard so.
      this.#giveBack(id)
      // Without the store each process asks for itself.
      return this.#ask(requestId, undefined)
    }
  }

  async #ask(requestId: string, claim: Claim | undefined): Promise<Shared> {
    const askedAt = standstill.now()
    const outcome = await this.#exchange(requestId)
    const freshUntil = Math.max(askedAt + this.#deps.upstream.healthMs, standstill.now())
    const shared: Shared = { outcome, freshUntil }
    this.#last = shared
    if (claim !== undefined) {
      await beforeDeadline(STORE_MS, this.#publish(shared, claim)).catch(() => this.#giveBack(claim.id))
    }
    return shared
  }

  /** Removes a claim once the store is back, so that the others need not wait until it expires. */
  #giveBack(id: string): void {
    const { store, upstream } = this.#deps
    this.#pending.undo(() => store.removeIf(this.#key, id), storeNow() + upstream.headersMs)
  }

  async #publish({ outcome, freshUntil: until }: Shared, { id, storeAheadMs }: Claim): Promise<void> {
    const { store, envelope } = this.#deps
    const freshUntil = Math.ceil(until + storeAheadMs)
    const text = JSON.stringify({ outcome: { ...outcome, cause: undefined }, freshUntil })
    // Sealed, so that a program that can write to the store cannot forge a response of upstream.
    const sealed = envelope.seal(this.#key, NO_HOLDER, text)
    await store.replace(this.#key, id, sealed, freshUntil)
  }

  /** Undefined for what is no response, and for one of an instance of version 0.3 whose clock is ahead, which is removed. */
  async #open(text: string, storeAheadMs: number): Promise<Shared | undefined> {
    const { store, envelope, upstream } = this.#deps
    const opened = envelope.open(this.#key, NO_HOLDER, text)
    if (opened === undefined) return undefined
    const { outcome, freshUntil } = JSON.parse(opened) as Shared
    const until = freshUntil - storeAheadMs
    if (until <= standstill.now() + upstream.healthMs + MAX_CLOCK_SKEW_MS) return { outcome, freshUntil: until }
    await store.removeIf(this.#key, text)
    return undefined
  }

  /** Asks upstream, and once more if the connection fails before a response. The two attempts together get no more time than one. */
  async #exchange(requestId: string): Promise<Outcome> {
    const startedAt = performance.now()
    let outcome = await this.#exchangeOnce(requestId, this.#deps.upstream.headersMs)
    const leftMs = startedAt + this.#deps.upstream.headersMs - performance.now()
    if (failedBeforeResponse(outcome) && leftMs > 0) outcome = await this.#exchangeOnce(requestId, leftMs)
    if (outcome.is === 'overBudget') return outcome
    if (outcome.is !== 'answered') return { is: outcome.is, cause: outcome.cause }
    const { status, headers: responded, body } = outcome.response
    if (isWithheld(status)) {
      const { 'retry-after': retryAfter } = responded
      return { is: 'withheld', status, ...(typeof retryAfter === 'string' && { retryAfter }) }
    }
    return { is: 'answered', status, headers: responded, body: body.toString('base64') }
  }

  async #exchangeOnce(requestId: string, timeoutMs: number): Promise<FetchOutcome> {
    const { clients, metrics } = this.#deps
    const endpoint = this.#endpoint
    const { method, path } = endpoint
    const headers = ['user-agent', USER_AGENT, 'x-request-id', requestId]
    const sentAt = performance.now()
    const outcome = await clients.reads.exchange({ method, path, template: path, headers, body: null, timeoutMs })
    metrics.upstreamRequests.count(endpoint, upstreamOutcome(outcome))
    metrics.upstreamLatency.add(path, { method }, (performance.now() - sentAt) / 1000)
    return outcome
  }
}

function failure(outcome: Exclude<Outcome, { is: 'answered' }>): Parameters<typeof upstreamProblem>[0] {
  if (outcome.is === 'withheld' || outcome.is === 'overBudget') return outcome
  const { is, cause = new Error('the shared request failed') } = outcome
  return { is, cause, responseBegan: false }
}
