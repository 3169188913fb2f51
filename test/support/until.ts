const POLL_MS = 5
/** Longer than anything that tests wait for takes on a slow machine. */
const DEADLINE_MS = 60_000

/**
 * Asks until it is so: for what no event tells of.
 * @param what it is, for whoever reads that it never was
 * @throws Error when it still is not after a minute
 */
export async function until(check: () => boolean | Promise<boolean>, what = String(check)): Promise<void> {
  const giveUpAt = performance.now() + DEADLINE_MS
  while (!(await check())) {
    if (performance.now() > giveUpAt) throw new Error(`never so within ${DEADLINE_MS / 1000} s: ${what}`)
    await new Promise((resolve) => void setTimeout(resolve, POLL_MS))
  }
}
