/**
 * A point in time by both clocks of this process (ms). Either alone may err: the monotonic clock stands still while the machine
 * sleeps, and the time of day may be set back.
 */
export interface Moment {
  readonly monotonic: number
  readonly timeOfDay: number
}

/** Now. */
export function moment(): Moment {
  return { monotonic: performance.now(), timeOfDay: Date.now() }
}

/** How long ago a moment was (ms), by the clock that says more. */
export function ageMs({ monotonic, timeOfDay }: Moment): number {
  return Math.max(performance.now() - monotonic, Date.now() - timeOfDay)
}
