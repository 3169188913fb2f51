/** The clocks and the timer of a budget. A simulation has its own. */
export interface Clock {
  /** Milliseconds of the monotonic clock. */
  now(): number
  /** Epoch milliseconds. It goes on while the machine sleeps, which {@link now} need not. */
  timeOfDay(): number
  /** Calls once, later. Returns how to cancel it. */
  after(ms: number, call: () => void): () => void
}

/** The clocks of this process. The timer keeps no process alive. */
export const PROCESS_CLOCK: Clock = {
  now: () => performance.now(),
  timeOfDay: () => Date.now(),
  after(ms, call) {
    const timer = setTimeout(call, ms)
    timer.unref()
    return () => clearTimeout(timer)
  },
}
