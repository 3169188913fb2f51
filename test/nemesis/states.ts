/** What an instance has said of itself between two moments. */
export interface Sample {
  readonly from: number
  readonly to: number
  readonly instance: number
  /** The status of `/readyz`. */
  readonly status: number
  readonly publicSockets: number
  readonly tradingSockets: number
  /** The pauses of orders that it obeys. */
  readonly pauses: number
  /** The upstream sockets that it keeps for the shared feed, with and without users. */
  readonly feedSockets: number
  /** The value of each metric that counts something of users. */
  readonly gauges: readonly { readonly instance: number; readonly name: string; readonly value: number }[]
}

/** A line of the audit log. Sessions have other names there. */
export interface AuditLine {
  readonly at: number
  readonly audit: string
  readonly session: string | undefined
  /** The request that caused it. */
  readonly requestId: string | undefined
  readonly reason: string | undefined
  /** What an operator has changed. */
  readonly control: string | undefined
}

/** What a process holds. */
export interface ProcessState {
  readonly pid: number
  /** The name of its instance. */
  readonly name: string
  readonly descriptors: number
  readonly megabytes: number
}

/** What was left once everybody had gone, and everything was healed. */
export interface Leftover {
  readonly at: number
  /** The instances that say nothing, so that nobody knows what is left there. */
  readonly silent: readonly number[]
  readonly gauges: Sample['gauges']
  /** The sockets that upstream has, and those that the instances keep for the shared feed. */
  readonly upstreamSockets: number
  readonly feedSockets: number
  /** The keys of Redis without a lifetime. */
  readonly lastingKeys: readonly string[]
  /** Each process that has lived through the whole run, as it was at the start and is now. */
  readonly processes: readonly { readonly before: ProcessState; readonly after: ProcessState }[]
}
