import type { Test } from 'tap'

const EVERY_MS = 10
/** An event loop that is merely busy runs its timers sooner than this. */
const AWAKE_MS = 50

/** A clock (ms) that does not count the time for which this process, or its machine, stood still. It ends with the test. */
export function awakeClock(t: Test): () => number {
  let readAt = performance.now()
  let sleptMs = 0
  const read = (): number => {
    const now = performance.now()
    sleptMs += Math.max(0, now - readAt - AWAKE_MS)
    readAt = now
    return now - sleptMs
  }
  const timer = setInterval(read, EVERY_MS)
  t.teardown(() => clearInterval(timer))
  return read
}
