const POLL_MS = 5

/** Asks until it is so: for what no event tells of. */
export async function until(check: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await check())) await new Promise((resolve) => void setTimeout(resolve, POLL_MS))
}
