/**
 * Ends this process, as an uncaught exception does, if the work rejects: for work that goes on as long as the process, without
 * which an instance would look well and be of no use. Any other rejection that nobody handles ends nothing.
 */
export function vital(work: Promise<unknown>): void {
  work.catch((error: unknown) => {
    // A promise would only reject with it once more.
    process.nextTick(() => {
      throw error
    })
  })
}
