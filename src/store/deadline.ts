/** A timer that is later than this was held up, with everything else in this process. */
export const LATE_MS = 50
/** For so long at least an answer is still waited for that may have come while this process was held up. */
const LOOK_AGAIN_MS = 250

/** What {@link Deadline.passed} rejects with. */
export class CommandTimeout extends Error {}

/** The time that a command may take, of which this process was awake. */
export class Deadline {
  readonly passed: Promise<never>
  #reject: (error: Error) => void = () => undefined
  #timer: NodeJS.Timeout

  constructor(ms: number) {
    this.passed = new Promise((_resolve, reject) => (this.#reject = reject))
    this.#timer = this.#expireIn(ms)
  }

  clear(): void {
    clearTimeout(this.#timer)
  }

  #expireIn(ms: number): NodeJS.Timeout {
    const dueAt = performance.now() + ms
    return setTimeout(() => {
      const lateMs = performance.now() - dueAt
      // Held up: the answer may have come meanwhile, and nobody has looked yet.
      if (lateMs > LATE_MS) this.#timer = this.#expireIn(Math.min(Math.max(lateMs, LOOK_AGAIN_MS), ms))
      else this.#reject(new CommandTimeout('no answer in time'))
    }, ms)
  }
}
