import type { Test } from 'tap'
import { replace } from './replace.ts'

interface Timer {
  readonly ms: number
  readonly call: () => void
}

/** The `setTimeout` of a test, whose timers run when it says so and not before. It can tell which are neither over nor cleared. */
export class ManualTimers {
  readonly #pending = new Map<unknown, Timer>()

  constructor(t: Test) {
    const { clearTimeout: clear } = globalThis
    replace(t, globalThis, 'setTimeout', (call: () => void, ms: number) => {
      const timer = { unref: () => timer }
      this.#pending.set(timer, { ms, call })
      return timer
    })
    replace(t, globalThis, 'clearTimeout', (timer: NodeJS.Timeout) => {
      // A timer from before, of a socket of an earlier test that closes now, would last for ever.
      if (!this.#pending.delete(timer)) clear(timer)
    })
  }

  /** The delays of those that are pending, in milliseconds. */
  get delays(): number[] {
    return [...this.#pending.values()].map(({ ms }) => ms)
  }

  /** The time of those that are pending now is over, of the shortest first. */
  run(): void {
    const due = [...this.#pending].sort(([, one], [, other]) => one.ms - other.ms)
    for (const [timer, { call }] of due) if (this.#pending.delete(timer)) call()
  }
}
