/** Something that happens at a time (ms). Of two at the same time, the one with the lower number comes first. */
export interface TimedEvent {
  readonly at: number
  readonly order: number
}

/** Events in the order of their times: a binary heap. */
export class EventQueue<Item extends TimedEvent> {
  readonly #heap: Item[] = []

  push(item: Item): void {
    const heap = this.#heap
    let at = heap.length
    for (let parent = (at - 1) >> 1; at > 0; parent = (at - 1) >> 1) {
      const above = heap[parent]
      if (above === undefined || isBefore(above, item)) break
      heap[at] = above
      at = parent
    }
    heap[at] = item
  }

  /** Takes the first event out. */
  pop(): Item | undefined {
    const heap = this.#heap
    const [first] = heap
    const last = heap.pop()
    if (last === undefined || last === first) return first
    let at = 0
    for (;;) {
      const left = heap[2 * at + 1]
      const right = heap[2 * at + 2]
      if (left === undefined) break
      const isRight = right !== undefined && isBefore(right, left)
      const child = isRight ? right : left
      if (isBefore(last, child)) break
      heap[at] = child
      at = 2 * at + (isRight ? 2 : 1)
    }
    heap[at] = last
    return first
  }
}

function isBefore(one: TimedEvent, other: TimedEvent): boolean {
  return one.at < other.at || (one.at === other.at && one.order < other.order)
}
