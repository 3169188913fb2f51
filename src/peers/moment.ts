/** A time by both clocks: the monotonic one may stand still while the machine is suspended, the other may be set back. */
export interface Moment {
  readonly monotonic: number
  readonly timeOfDay: number
}

/** This moment. */
export function now(): Moment {
  return { monotonic: performance.now(), timeOfDay: Date.now() }
}

/** How long ago a moment was (ms), by the clock that says more. */
export function ageOf({ monotonic, timeOfDay }: Moment): number {
  return Math.max(performance.now() - monotonic, Date.now() - timeOfDay)
}
