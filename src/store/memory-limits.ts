import {
  MAX_QUEUE_MS,
  MINUTE_MS,
  SILENCE_MS,
  type CallLease,
  type Holding,
  type SharedLimits,
} from './shared-limits.ts'

interface Statement {
  readonly count: number
  readonly at: number
}

/** {@link SharedLimits} inside this process. */
export class MemoryLimits implements SharedLimits {
  readonly #holders = new Map<string, Map<string, Statement>>()
  readonly #leased = new Map<string, number>()
  readonly #queueEnds = new Map<string, number>()
  #minute = 0

  async claim({ key, holder, count }: Holding, limit: number): Promise<boolean> {
    const at = Date.now()
    const holders = new Map([...(this.#holders.get(key) ?? [])].filter(([, held]) => at - held.at < SILENCE_MS))
    const own = holders.get(holder)?.count ?? 0
    holders.delete(holder)
    const others = [...holders.values()].reduce((sum, held) => sum + held.count, 0)
    const isGranted = others + count <= limit
    const held = isGranted ? count : own
    if (held > 0) holders.set(holder, { count: held, at })
    if (holders.size > 0) this.#holders.set(key, holders)
    else this.#holders.delete(key)
    return isGranted
  }

  async hold(holdings: readonly Holding[]): Promise<void> {
    for (const holding of holdings) await this.claim(holding, Infinity)
  }

  async leaseCalls(key: string, limit: number): Promise<CallLease> {
    const now = Date.now()
    const minute = Math.floor(now / MINUTE_MS)
    if (minute !== this.#minute) this.#leased.clear()
    this.#minute = minute
    const leased = this.#leased.get(key) ?? 0
    const left = limit - leased
    const calls = Math.max(0, Math.min(left, Math.max(1, Math.floor(left / 2))))
    this.#leased.set(key, leased + calls)
    return { calls, endsInMs: MINUTE_MS - (now % MINUTE_MS) }
  }

  async enqueue(key: string, durationMs: number): Promise<number> {
    const now = Date.now()
    const at = Math.max(now, this.#queueEnds.get(key) ?? 0)
    this.#queueEnds.set(key, Math.min(at + durationMs, now + MAX_QUEUE_MS))
    return at - now
  }
}
