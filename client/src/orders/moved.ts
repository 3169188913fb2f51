import type { SentOrder } from '../core/base/order-shape.ts'

/** A moment by both clocks of the machine. */
type Moment = Pick<SentOrder, 'sentAt' | 'tick'>

/**
 * By how many milliseconds the clock of the user has moved against the one that no user can set: by how much it was set, and how
 * long the machine slept, if the other one stops then.
 * @param to now by default
 */
export function movedMs(from: Moment, to: Moment = { sentAt: Date.now(), tick: performance.now() }): number {
  return to.sentAt - to.tick - (from.sentAt - from.tick)
}
