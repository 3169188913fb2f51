const MAX_CONCURRENT = 64

/** Runs a task for each item, a number of them at once. Rejects when one has failed. */
export async function eachOf<Item>(items: readonly Item[], task: (item: Item) => Promise<unknown>): Promise<void> {
  const left = items.values()
  const work = async (): Promise<void> => {
    for (const item of left) await task(item)
  }
  await Promise.all(Array.from({ length: MAX_CONCURRENT }, work))
}
