const MAX_CONCURRENT = 64

/** Runs a task for each item, a number of them at once. Rejects when all have run, if one has failed. */
export async function eachOf<Item>(items: readonly Item[], task: (item: Item) => Promise<unknown>): Promise<void> {
  const left = items.values()
  const failures: unknown[] = []
  const work = async (): Promise<void> => {
    for (const item of left) await task(item).catch((error: unknown) => failures.push(error))
  }
  await Promise.all(Array.from({ length: MAX_CONCURRENT }, work))
  if (failures.length > 0) throw failures[0]
}

/** Tells each listener. Throws when all have been told, if one has failed: a socket must end even if another one cannot. */
export function tell<News>(listeners: Iterable<(news: News) => void>, news: News): void {
  const failures: unknown[] = []
  for (const listener of listeners) {
    try {
      listener(news)
    } catch (error) {
      failures.push(error)
    }
  }
  if (failures.length > 0) throw failures[0]
}
