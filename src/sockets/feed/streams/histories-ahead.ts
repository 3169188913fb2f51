import type { History } from './history.ts'
import type { Point, RecentMessages, Seam } from '../history/index.ts'
import type { Subscription } from './subscription.ts'

/** Those who were given a history, each with what its messages begin with, and the number of the message that follows it. */
interface Passed {
  readonly ahead: History['ahead']
  readonly next: number
}

/** The histories that are ahead of a stream: it has yet to send messages that they contain. */
export class HistoriesAhead {
  readonly #seams = new Map<History, Seam>()

  /** The number of the oldest message that may still have to be sent after one of them. Infinity for none. */
  get first(): number {
    return Math.min(...Array.from(this.#seams.values(), ({ first = Infinity }) => first))
  }

  add(history: History, seam: Seam): void {
    this.#seams.set(history, seam)
  }

  /** Forgets a browser that leaves. */
  leave(subscription: Subscription): void {
    for (const history of this.#seams.keys()) if (history.ahead.delete(subscription)) this.release(history)
  }

  /** Lets go of a history that nobody has, and nobody is given any more: the stream may be silent for days. */
  release(history: History): void {
    if (history.answer === undefined && history.ahead.size === 0) this.#seams.delete(history)
  }

  /**
   * Looks which histories the stream has caught up with, and notes where they go on.
   * @param point the place of the stream's next message
   * @param recent the messages before it
   * @returns those that it goes beyond, and those that end with it
   */
  pass(point: Point | undefined, recent: RecentMessages): Record<'passed' | 'reached', Passed[]> {
    const passed: Passed[] = []
    const reached: Passed[] = []
    const { nextSequence } = recent
    for (const [history, seam] of this.#seams) {
      const isLater = seam.isLater(point, nextSequence)
      if (!isLater && !seam.isOver) continue
      this.#seams.delete(history)
      const { ahead } = history
      const next = isLater ? recent.afterSeam(seam, point) : nextSequence + 1
      history.next = next
      if (isLater) passed.push({ ahead, next })
      else reached.push({ ahead, next })
    }
    return { passed, reached }
  }

  /** Removes all. @returns those who were given them, each with what its messages begin with */
  clear(): (readonly [Subscription, Buffer])[] {
    const all = Array.from(this.#seams.keys(), ({ ahead }) => [...ahead]).flat()
    this.#seams.clear()
    return all
  }
}
