/** A timer that fires later than this shows that the event loop of this process was blocked. */
export const LATE_MS = 50
/** Minimum extra wait after a block: a reply may have arrived that this process has not read yet. */
const MIN_GRACE_MS = 250

/** The rejection of {@link Deadline.passed}. */
export class CommandTimeout extends Error {}

/** The time that a command may take. Time for which this process was blocked does not count. */
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
      if (lateMs > LATE_MS) this.#timer = this.#expireIn(Math.min(Math.max(lateMs, MIN_GRACE_MS), ms))
      else this.#reject(new CommandTimeout('no reply in time'))
    }, ms)
  }
}
