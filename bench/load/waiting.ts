import { setTimeout as pause } from 'node:timers/promises'

/** Resolves when this holds, or after a timeout. @returns whether it holds */
export async function holds(isDone: () => boolean, timeoutMs: number, everyMs = 1): Promise<boolean> {
  const giveUpAt = performance.now() + timeoutMs
  while (!isDone() && performance.now() < giveUpAt) await pause(everyMs)
  return isDone()
}

/** Milliseconds of the monotonic clock, which is the same in all processes. */
export function clock(): number {
  return Number(process.hrtime.bigint()) / 1e6
}
