/**
 * Runs an action again and again, each time `everyMs` after the last run has ended. The timer keeps no process alive.
 * @param action should not reject. If it does, nothing handles that, and the next run comes all the same
 * @param firstMs the time before the first run
 * @returns ends the runs; one that is under way goes on
 */
export function polls(action: () => Promise<void>, everyMs: number, firstMs = everyMs): () => void {
  let isOver = false
  let timer: NodeJS.Timeout
  const plan = (ms: number): void => {
    timer = setTimeout(() => void action().finally(() => isOver || plan(everyMs)), ms).unref()
  }
  plan(firstMs)
  return () => {
    isOver = true
    clearTimeout(timer)
  }
}
