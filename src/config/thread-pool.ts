/** libuv reads the variable when the process starts, so what `.env` says of it, which is read later, does not hold. */
export const THREADS_AT_START = process.env['UV_THREADPOOL_SIZE']

const DEFAULT_THREADS = 4
const MOST_THREADS = 1024
/** Places to look up names with which a silent name server keeps only its own peer waiting: see `src/peers/names.ts`. */
const ENOUGH_PLACES = 8

/** What `npm start` and the image set, and what a worker gets whose supervisor was started without it. */
export const THREADS_OF_A_START = '16'

/** How many names this process can look up at once: libuv lends half of its threads to that, rounded up. */
export const LOOKUP_PLACES = Math.ceil(threads(THREADS_AT_START) / 2)

/** Returns a warning if a silent name server of one peer may keep others waiting; undefined otherwise. */
export function threadPoolWarning(places = LOOKUP_PLACES): string | undefined {
  if (places >= ENOUGH_PLACES) return undefined
  return (
    `This process can look up only ${places} names at once, so that name servers which do not answer about one peer may ` +
    `keep the others waiting: set UV_THREADPOOL_SIZE=${THREADS_OF_A_START} in its environment, before it starts (not in .env)`
  )
}

/** Reads the variable as libuv does. */
function threads(value: string | undefined): number {
  if (value === undefined) return DEFAULT_THREADS
  const size = Number.parseInt(value, 10) || 1
  return size < 0 ? MOST_THREADS : Math.min(size, MOST_THREADS)
}
