/** The clock of the store, once it was heard. */
let storeClock: ((monotonic: number) => number) | undefined

/**
 * The time by the clock of the store (epoch ms); by that of this machine where nothing has told it yet, as with a store of one
 * process. All that instances share lasts by it, and so does all that a browser or the provider brings back: instances whose clocks
 * differ agree on it. For what concerns this process alone the monotonic clock is better.
 * @param monotonic this moment by the monotonic clock, for callers that have just looked at it
 */
export function storeNow(monotonic?: number): number {
  return storeClock === undefined ? Date.now() : storeClock(monotonic ?? performance.now())
}

/** How far the clock of the store is ahead of that of this machine, in whole seconds; negative if it is behind. */
export function storeAheadSeconds(): number {
  return Math.round((storeNow() - Date.now()) / 1000)
}

/** Has {@link storeNow} follow a clock, which runs by the monotonic one. @returns ends that */
export function followStoreClock(clock: (monotonic: number) => number): () => void {
  storeClock = clock
  return () => {
    if (storeClock === clock) storeClock = undefined
  }
}
