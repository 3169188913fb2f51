/** A timer that fires later than this shows that the event loop of this process was blocked. */
export const LATE_MS = 50
/** Minimum extra wait after a block: a reply may have arrived that this process has not read yet. */
const MIN_GRACE_MS = 250

/** A reply has not come before its deadline. */
export class CommandTimeout extends Error {
  readonly code = 'ETIMEDOUT'
}

/**
 * Waits for a reply. Time for which this process was blocked does not count.
 * @throws CommandTimeout when there is none after `ms`
 */
export function beforeDeadline<Reply>(ms: number, reply: Promise<Reply>): Promise<Reply> {
  return new Promise((resolve, reject) => {
    let timer: NodeJS.Timeout | undefined
    const wait = (leftMs: number): void => {
      const dueAt = performance.now() + leftMs
      timer = setTimeout(() => {
        const lateMs = performance.now() - dueAt
        if (lateMs > LATE_MS) wait(Math.min(Math.max(lateMs, MIN_GRACE_MS), leftMs))
        // A reply that has arrived is read first.
        else setImmediate(() => reject(new CommandTimeout('no reply in time')))
      }, leftMs)
    }
    wait(ms)
    // Not Promise.race(), which costs each command some promises more.
    reply.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}
