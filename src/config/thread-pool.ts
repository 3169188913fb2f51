/** libuv reads the variable when it first needs a thread, perhaps before `.env` is read, so only its first value counts. */
const atStart = process.env['UV_THREADPOOL_SIZE']

const DEFAULT_THREADS = 4
const MOST_THREADS = 1024
/** With fewer, a name server that is silent about one peer may keep others waiting (`src/peers/names.ts`). */
const ENOUGH_PLACES = 8

/** `npm start` and the image set this. */
const THREADS_OF_A_START = '16'

/** A worker gets the same, unless the operator has set another number. */
export const THREADS_OF_WORKERS = atStart ?? THREADS_OF_A_START

/** How many names this process can look up at once. */
export const LOOKUP_PLACES = placesOf(atStart)

/**
 * Returns a warning if name servers that are silent about one peer may keep others waiting; undefined otherwise.
 * @param threads UV_THREADPOOL_SIZE when the process started
 */
export function threadPoolWarning(workers: number, threads = atStart): string | undefined {
  const places = placesOf(workers > 1 ? (threads ?? THREADS_OF_A_START) : threads)
  if (places >= ENOUGH_PLACES) return undefined
  return (
    `A process can look up only ${places} names at once, so that name servers which are silent about one peer may keep the ` +
    `others waiting: set UV_THREADPOOL_SIZE=${THREADS_OF_A_START} in the environment of the start (not in .env)`
  )
}

/** libuv lends half of its threads to lookups, rounded up, and reads their number like this. */
function placesOf(threads: string | undefined): number {
  const size = threads === undefined ? DEFAULT_THREADS : Number.parseInt(threads, 10) || 1
  return Math.ceil((size < 0 ? MOST_THREADS : Math.min(size, MOST_THREADS)) / 2)
}
