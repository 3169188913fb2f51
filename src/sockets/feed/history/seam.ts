import type { Point } from './points.ts'

/** What a stream has of the last epoch of a history. */
export interface Streamed {
  /** The number of its first message, if it has any. */
  readonly first: number | undefined
  /** Its values so far, in order. */
  readonly values: readonly string[]
  /** How many of these come from the history that the stream began with. */
  readonly begun: number
  /** Whether no earlier value of the epoch is missing. */
  readonly isComplete: boolean
}

/** Where a history ends and its stream goes on. While the history is ahead, messages that it contains are still to come. */
export interface Seam {
  /** The last epoch of the history. */
  readonly epoch: number
  /** The number of the oldest message of that epoch that may still have to be sent. Undefined for none. */
  readonly first: number | undefined
  /** Whether all further messages are later than the history, although the latest one was not. */
  readonly isOver: boolean

  /** How many of the values so far the history contains. Undefined when it contains more than these. */
  containedSoFar(): number | undefined

  /**
   * Whether the next message of the stream is later than the history.
   * @param sequence the number of the message
   */
  isLater(point: Point | undefined, sequence: number): boolean

  /** Whether this point can only be later than the history. */
  isPassedBy(point: Point | undefined): boolean

  /**
   * Which messages are sent when the stream has passed the history without sending its last value.
   * @param points what the stream still has of the last epoch
   * @returns the index of the first; -1 for none of them
   */
  mayBeLater(points: readonly (Point | undefined)[]): number
}
