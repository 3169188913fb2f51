/**
 * The result of a promise, or undefined when it is still pending after `ms`. It rejects if the promise rejects in time; a later
 * rejection is ignored. The timer ends with the wait.
 */
export async function within<Result>(ms: number, promise: Promise<Result>): Promise<Result | undefined> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(resolve, ms, undefined)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}
