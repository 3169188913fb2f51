import type { FastifyBaseLogger } from 'fastify'
import { MAX_QUEUE_MS } from '../store/shared-limits.ts'
import { within } from '../time/within.ts'
import type { Budget } from '../upstream/budget/admission.ts'
import { after, CLOSE, type CloseStatus } from './close-codes.ts'

interface ReturnsOptions {
  readonly budget: Pick<Budget, 'spread'>
  /** How many instances share the budget (UPSTREAM_BUDGET_INSTANCES). */
  readonly instances: number
  /** Takes a stretch of time in the queue of all instances that drain (ms). Resolves with the delay of its beginning. */
  readonly enqueue: (durationMs: number) => Promise<number>
  readonly log: Pick<FastifyBaseLogger, 'info'>
}

/** The closes of this server after which the page of an open relay comes back. Upstream's own are passed on as they came. */
const COME_BACK: ReadonlySet<CloseStatus> = new Set([
  CLOSE.restarting,
  CLOSE.slowConsumer,
  CLOSE.storeDown,
  CLOSE.upstreamLost,
])
/** The codes of the same closes. A refused handshake gets no others of upstream. */
const COME_BACK_CODES: ReadonlySet<number> = new Set([CLOSE.restarting.code, CLOSE.upstreamLost.code])

/** How many sessions keep a place before sessions whose time has come are first forgotten. */
const MIN_SWEEP = 1000

/**
 * Tells pages whose trading sockets close when to come back, since each that does costs a one-time URL of the upstream budget
 * (docs/operating/balancers.md, Pages that come back). Each gets a place in a queue that is as long as the budget needs, up to an hour.
 * Pages for which it has no room come back in its second half, and are refused or placed anew.
 */
export class Returns {
  readonly #options: ReturnsOptions
  /** Places of sessions that were refused (monotonic ms). A page that asks again and again keeps the one it has. */
  readonly #refused = new Map<string, number>()
  #sweepAt = MIN_SWEEP
  #relays = 0
  #placed = 0
  #beginsAt = 0
  /** How many instances give places in the same time. */
  #sharers: number

  constructor(options: ReturnsOptions) {
    this.#options = options
    this.#sharers = options.instances
  }

  /** The number of sessions whose places are remembered. */
  get kept(): number {
    return this.#refused.size
  }

  /** Counts an open trading relay. Returns how to uncount it. */
  join(): () => void {
    this.#relays++
    return () => void this.#relays--
  }

  /** The close of an open trading relay, with a time to come back where its page does so. */
  closed(close: CloseStatus): CloseStatus {
    return COME_BACK.has(close) ? after(close, this.#place(0)) : close
  }

  /** The close of a refused handshake, with a time to come back where its page does so: not before a time that it has already. */
  refused(sessionKey: string, close: CloseStatus): CloseStatus {
    if (!COME_BACK_CODES.has(close.code) && close.reason !== CLOSE.upstreamBudget.reason) return close
    const earliestMs = 1000 * (close.retryAfterSeconds ?? 0)
    const now = performance.now()
    const kept = (this.#refused.get(sessionKey) ?? 0) - now
    if (kept > 0) return after(close, Math.max(kept, earliestMs))
    const placeMs = this.#place(earliestMs)
    this.#refused.set(sessionKey, now + placeMs)
    if (this.#refused.size >= this.#sweepAt) this.#sweep(now)
    return after(close, placeMs)
  }

  /**
   * Prepares to close all relays. Other instances that drain too have places before or behind those of this one; if they cannot
   * be asked in time, each instance assumes that all of them drain at once.
   * @returns the time after which the last page may come back (ms)
   */
  async drain(timeoutMs: number): Promise<number> {
    if (this.#relays === 0) return 0
    const queued = this.#options.enqueue(this.#options.budget.spread(this.#relays + 1))
    const delayMs = await within(timeoutMs, queued).catch(() => undefined)
    if (delayMs !== undefined) this.#sharers = 1
    this.#begin(performance.now() + (delayMs ?? 0))
    const lastMs = Math.min((delayMs ?? 0) + this.#placeAt(this.#relays - 1), MAX_QUEUE_MS)
    const details = { relays: this.#relays, firstAfterMs: delayMs ?? 0, lastAfterMs: Math.round(lastMs) }
    this.#options.log.info(details, 'pages are told when to come back')
    return lastMs
  }

  /** Takes the next place. Returns how far away it is (ms). */
  #place(earliestMs: number): number {
    const now = performance.now()
    // All pages have come back, so a new queue begins.
    if (now >= this.#beginsAt + this.#placeAt(this.#placed)) this.#begin(now + Math.min(earliestMs, MAX_QUEUE_MS))
    // Whole milliseconds: the sum and the difference are off by a fraction of one, which would become a whole second.
    const placeMs = Math.round(this.#beginsAt + this.#placeAt(this.#placed) - now)
    if (placeMs > MAX_QUEUE_MS) return Math.max((MAX_QUEUE_MS * (1 + Math.random())) / 2, earliestMs)
    this.#placed++
    return Math.max(placeMs, earliestMs)
  }

  /** Forgets the places whose time has come. A queue that never ends would keep them all. */
  #sweep(now: number): void {
    for (const [key, at] of this.#refused) if (at <= now) this.#refused.delete(key)
    this.#sweepAt = Math.max(MIN_SWEEP, 2 * this.#refused.size)
  }

  #begin(at: number): void {
    this.#placed = 0
    this.#beginsAt = at
    this.#refused.clear()
  }

  /** When the page with this index comes back (ms from the beginning of the queue). */
  #placeAt(index: number): number {
    return this.#options.budget.spread(index * this.#sharers + 1)
  }
}
