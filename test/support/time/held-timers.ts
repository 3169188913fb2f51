import type { Test } from 'tap'
import { replace } from './replace.ts'

/** Timers of one kind and duration, which run when a test says so and not before. All others run as ever. */
export class HeldTimers {
  readonly #held = new Map<NodeJS.Timeout, () => void>()

  /** Holds the timers that are made from now on. @param ms their duration, which no deadline of the test may have */
  constructor(t: Test, kind: 'setTimeout' | 'setInterval', ms: number) {
    const { [kind]: make, clearTimeout: clear } = globalThis
    replace(t, globalThis, kind, (run: (...args: unknown[]) => void, after: number, ...args: unknown[]) => {
      if (after !== ms) return make(() => run(...args), after)
      // It is never due: it stands for the held one.
      const timer = make(() => undefined, 2 ** 31 - 1).unref()
      this.#held.set(timer, () => {
        if (kind === 'setTimeout') this.#held.delete(timer)
        run(...args)
      })
      return timer
    })
    for (const name of ['clearTimeout', 'clearInterval'] as const) {
      replace(t, globalThis, name, (timer: NodeJS.Timeout) => {
        this.#held.delete(timer)
        clear(timer)
      })
    }
  }

  /** How many there are that are neither over nor cleared. */
  get size(): number {
    return this.#held.size
  }

  /** Their time is over. */
  run(): void {
    for (const run of [...this.#held.values()]) run()
  }
}
