import type { Test } from 'tap'
import { HeldTimers } from '../time/held-timers.ts'
import { replace } from '../time/replace.ts'

/** How often a connection of the feed looks after what waits on it. */
const BEAT_MS = 10_000

/** The beats of the connections that the feed opens from now on. They and the time before them pass when a test says so. */
export class Beats {
  readonly #timers: HeldTimers
  #passedMs = 0

  constructor(t: Test) {
    this.#timers = new HeldTimers(t, 'setInterval', BEAT_MS)
    const now = performance.now.bind(performance)
    replace(t, performance, 'now', () => now() + this.#passedMs)
  }

  /** How many connections have one. */
  get size(): number {
    return this.#timers.size
  }

  /** @param ms how long each takes */
  pass(count = 1, ms = BEAT_MS): void {
    for (let beat = 0; beat < count; beat++) {
      this.#passedMs += ms
      this.#timers.run()
    }
  }
}
