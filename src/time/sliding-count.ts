/** Events of about the same time. */
export interface Slice {
  /** When the first and the last of them happened (ms). */
  readonly from: number
  readonly until: number
  readonly count: number
}

/**
 * Counts events by when they happened, and forgets old ones. The times are those of its owner's clock. Events of about the same
 * time are one slice, which counts and is forgotten as if all of them had happened at its end: none is forgotten too early.
 */
export class SlidingCount {
  readonly #sliceMs: number
  readonly #slices: { from: number; until: number; count: number }[] = []

  /** @param sliceMs a slice is shorter than this; 0 for a slice of each event */
  constructor(sliceMs: number) {
    this.#sliceMs = sliceMs
  }

  /** The oldest first. */
  get slices(): readonly Slice[] {
    return this.#slices
  }

  /** Counts events that happened at a time: most often the latest. Returns their slice. */
  add(at: number, count = 1): Slice {
    let place = this.#slices.length
    while ((this.#slices[place - 1]?.from ?? at) > at) place--
    const slice = this.#slices[place - 1]
    if (slice === undefined || at - slice.from >= this.#sliceMs) {
      const added = { from: at, until: at, count }
      this.#slices.splice(place, 0, added)
      return added
    }
    slice.until = Math.max(slice.until, at)
    slice.count += count
    return slice
  }

  /** The events after a time. */
  since(time: number): number {
    let count = 0
    for (const slice of this.#slices) if (slice.until > time) count += slice.count
    return count
  }

  /** Forgets the events up to a time, and returns their slices. */
  forget(time: number): readonly Slice[] {
    const kept = this.#slices.findIndex(({ until }) => until > time)
    if (kept === 0) return NONE
    return this.#slices.splice(0, kept < 0 ? this.#slices.length : kept)
  }
}

const NONE: readonly Slice[] = []
