/**
 * Starts to measure a time.
 * @returns a function that returns how long ago that was (ms), by the clock of this process that says more: the steady one
 * may stand still while the machine is suspended, and the time of day may be set back
 */
export function startStopwatch(): () => number {
  const [startedAt, startedAtTimeOfDay] = [performance.now(), Date.now()]
  return () => Math.max(performance.now() - startedAt, Date.now() - startedAtTimeOfDay)
}
