/**
 * Loaded by `--import`: while the process is stopped, its monotonic clock stands still, and the time of day goes on. So it is on
 * a machine that is suspended.
 */
const EVERY_MS = 10
/** An event loop that is merely busy runs its timers sooner than this. */
const AWAKE_MS = 100
const realNow = performance.now.bind(performance)
let readAt = realNow()
let sleptMs = 0
performance.now = (): number => {
  const now = realNow()
  if (now - readAt > AWAKE_MS) sleptMs += now - readAt
  readAt = now
  return now - sleptMs
}
setInterval(() => void performance.now(), EVERY_MS).unref()
