/**
 * A process that ran nothing for longer than this stood still: it was stopped, its machine was suspended, or its event loop was
 * blocked.
 */
const STILL_MS = 500
/** How often the clocks are looked at when nobody else does. */
const LOOK_MS = 100

/** The clocks of a process. Neither is enough alone: the first may stand still with the machine, and the second may be set. */
interface TwoClocks {
  /** Ms of the monotonic clock. */
  monotonic(): number
  /** Epoch ms. */
  timeOfDay(): number
}

/** The clocks of this process. */
const CLOCKS: TwoClocks = { monotonic: () => performance.now(), timeOfDay: () => Date.now() }

/**
 * Notices that this process stood still, by either of its clocks. All that it had heard until then says nothing of what happened
 * meanwhile. A caller that is about to rely on it asks at that very moment, since news that have arrived may be handled before any timer.
 */
export class Standstill {
  readonly #clocks: TwoClocks
  #count = 0
  #lookedAt = 0
  /** By how much the time of day is ahead of the monotonic clock. */
  #aheadMs = 0
  /** How long the monotonic clock stood still, or the time of day was set ahead. */
  #addedMs = 0
  #looks: NodeJS.Timeout | undefined

  constructor(clocks = CLOCKS) {
    this.#clocks = clocks
  }

  /** How often this process has stood still so far. It costs two looks at a clock. */
  get count(): number {
    this.#look()
    return this.#count
  }

  /** The count at the last look, for callers that have just looked. */
  get noticed(): number {
    return this.#count
  }

  /**
   * Ms of a clock for the age of what was heard. It goes on while the machine is suspended, and never back. It may be ahead after
   * the time of day was set, so nothing that must last, such as a limit of calls, is measured by it.
   */
  now(): number {
    this.#look()
    return this.lookedAt
  }

  /** This clock at the last look, which was a tenth of a second ago at most. */
  get lookedAt(): number {
    return this.#lookedAt + this.#addedMs
  }

  /** The monotonic clock at the last look. */
  get monotonic(): number {
    return this.#lookedAt
  }

  #look(): void {
    const now = this.#clocks.monotonic()
    const aheadMs = this.#clocks.timeOfDay() - now
    if (this.#looks === undefined) this.#begin(now, aheadMs)
    const jumpMs = aheadMs - this.#aheadMs
    if (jumpMs > STILL_MS) this.#addedMs += jumpMs
    // A clock that was set back may hide how long the machine was suspended.
    if (now - this.#lookedAt > STILL_MS || Math.abs(jumpMs) > STILL_MS) this.#count++
    this.#lookedAt = now
    this.#aheadMs = aheadMs
  }

  /** The first look finds nothing. From then on the timer looks, so that a time without requests is no standstill. */
  #begin(now: number, aheadMs: number): void {
    this.#lookedAt = now
    this.#aheadMs = aheadMs
    this.#looks = setInterval(() => this.#look(), LOOK_MS).unref()
  }
}

/** The standstills of this process. */
export const standstill = new Standstill()
