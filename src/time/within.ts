import { judgeAfter } from './judge-after.ts'

/**
 * The result of a promise, or undefined when it is still pending after `ms`. It rejects if the promise rejects in time; a later
 * rejection is ignored. The timer ends with the wait.
 */
export async function within<Result>(ms: number, promise: Promise<Result>): Promise<Result | undefined> {
  let end: (() => void) | undefined
  const late = new Promise<undefined>((resolve) => {
    end = judgeAfter(ms, () => resolve(undefined))
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    end?.()
  }
}
