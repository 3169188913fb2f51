/** What a probe found. */
export interface MasterReport {
  /** The code of the error with which the master refuses everything; `OOM` if only what needs memory. Undefined while it serves. */
  readonly refusal: string | undefined
  /** The commands that it does not run for this user. */
  readonly refused: readonly string[]
  readonly clock: ClockReading | undefined
}

/** A reading of a server's clock. */
export interface ClockReading {
  /** What it showed (epoch ms) at some time between the two others. */
  readonly time: number
  /** By the monotonic clock of this process (ms). */
  readonly sentAt: number
  readonly receivedAt: number
}
