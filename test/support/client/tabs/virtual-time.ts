/** A timer, and whose it is: that of a tab waits while the tab stands still. */
export interface Timer {
  at: number
  readonly call: () => void
  readonly of: Holder | undefined
  /** Whether it stands still while the machine sleeps, as those of a page do; what arrives meanwhile waits. */
  readonly isOfPage: boolean
}

/** Who has timers. */
export interface Holder {
  /** Whether no task of it runs at present, as in a page that is frozen, or kept for Back. */
  readonly isStill: boolean
}

/** Lets promises settle. */
const settled = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve))

/** The time of a machine and of the servers that it talks to. It passes when a test says so. */
export class VirtualTime {
  /** The true time, in milliseconds since 1970. */
  now = 1_700_000_000_000
  /** By how much the clock of the machine is wrong, and for how long the machine has slept. */
  wrongMs = 0
  sleptMs = 0
  readonly #timers = new Set<Timer>()

  #isAsleep = false

  later(ms: number, call: () => void, of?: Holder, isOfPage = false): Timer {
    const timer = { at: this.now + Math.max(ms, 0), call, of, isOfPage }
    this.#timers.add(timer)
    return timer
  }

  cancel(timer: unknown): void {
    this.#timers.delete(timer as Timer)
  }

  /** The timers of one, which are left behind when it has ended. */
  of(holder: Holder): number {
    return [...this.#timers].filter(({ of }) => of === holder).length
  }

  forget(holder: Holder): void {
    for (const timer of this.#timers) if (timer.of === holder) this.#timers.delete(timer)
  }

  async pass(ms: number): Promise<void> {
    const until = this.now + ms
    await settled()
    for (;;) {
      let next: Timer | undefined
      for (const timer of this.#timers) {
        const isStill = timer.of !== undefined && (this.#isAsleep || timer.of.isStill)
        if (!isStill && (!next || timer.at < next.at)) next = timer
      }
      if (!next || next.at > until) break
      this.now = Math.max(this.now, next.at)
      this.#timers.delete(next)
      next.call()
      await settled()
    }
    this.now = until
  }

  /** The machine sleeps. Nothing of it happens meanwhile; what others do happens. */
  async sleep(ms: number): Promise<void> {
    for (const timer of this.#timers) if (timer.isOfPage) timer.at += ms
    this.sleptMs += ms
    this.#isAsleep = true
    await this.pass(ms)
    this.#isAsleep = false
  }
}
