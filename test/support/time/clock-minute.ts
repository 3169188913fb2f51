import { setTimeout as delay } from 'node:timers/promises'

const MINUTE_MS = 60_000
/** More than a test of one minute's limit takes. */
const NEEDED_MS = 8000

/** Resolves when enough of the current minute of the clock is left for a test of a limit that counts in such minutes. */
export async function earlyInAMinute(): Promise<void> {
  const leftMs = MINUTE_MS - (Date.now() % MINUTE_MS)
  if (leftMs < NEEDED_MS) await delay(leftMs + 10)
}
