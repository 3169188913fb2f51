/** Failures in a row after which everybody waits, not only who met them. */
const THRESHOLD = 5
const FIRST_PAUSE_MS = 1000
const LONGEST_PAUSE_MS = 30_000

/** How long to wait after so many failures in a row: from one second to half a minute, and never quite the same. */
export function pauseMs(failures: number): number {
  const longest = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** (failures - 1))
  return longest * (0.75 + Math.random() / 4)
}

/**
 * Keeps requests from a peer that fails: after five failures in a row they are refused for a while (open). Then a single
 * one goes through (half-open): it closes the circuit, or opens it for twice as long. It also bounds how many are under way,
 * since a peer that says nothing holds a descriptor for each.
 */
export class CircuitBreaker {
  readonly #maxConcurrent: number
  #underWay = 0
  #failures = 0
  /** Epoch ms. */
  #openUntil = 0
  #isProbing = false
  #workedAt = 0

  constructor(maxConcurrent: number) {
    this.#maxConcurrent = maxConcurrent
  }

  get isOpen(): boolean {
    return this.#failures >= THRESHOLD
  }

  /** When the peer last worked (epoch ms); 0 if it never has. */
  get workedAt(): number {
    return this.#workedAt
  }

  /** Milliseconds until it is worth trying again; 0 when a request would be let through now. */
  get retryAfterMs(): number {
    const left = this.#openUntil - Date.now()
    if (this.isOpen && left > 0) return left
    const isTaken = this.isOpen ? this.#isProbing : this.#underWay >= this.#maxConcurrent
    return isTaken ? FIRST_PAUSE_MS : 0
  }

  /** Runs a request and learns from its result. Undefined, without running it, while {@link retryAfterMs} is not 0. */
  async run<Result>(
    request: () => Promise<Result>,
    isFailure: (result: Result) => boolean,
  ): Promise<Result | undefined> {
    if (this.retryAfterMs > 0) return undefined
    const isProbe = this.isOpen
    if (isProbe) this.#isProbing = true
    this.#underWay++
    try {
      const result = await request()
      if (isFailure(result)) this.#fail(isProbe)
      else this.succeed()
      return result
    } catch (error) {
      this.#fail(isProbe)
      throw error
    } finally {
      this.#underWay--
      if (isProbe) this.#isProbing = false
    }
  }

  /** The peer has asked to be left alone for so long. More than half a minute is not believed. */
  open(ms: number): void {
    this.#failures = Math.max(this.#failures, THRESHOLD)
    this.#openUntil = Date.now() + Math.min(Math.max(ms, FIRST_PAUSE_MS), LONGEST_PAUSE_MS)
  }

  /** The peer is known to work: closes the circuit. */
  succeed(): void {
    this.#failures = 0
    this.#openUntil = 0
    this.#workedAt = Date.now()
  }

  #fail(isProbe: boolean): void {
    // Those that were under way when it opened fail as well, and tell nothing new.
    if (this.isOpen && !isProbe) return
    this.#failures++
    if (this.isOpen) this.#openUntil = Date.now() + pauseMs(this.#failures - THRESHOLD + 1)
  }
}
