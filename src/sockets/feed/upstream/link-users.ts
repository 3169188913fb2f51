import type { UpstreamMessage } from '../wire/index.ts'

/** The sender of an upstream request. */
export interface Requester {
  /** Takes a message with the `req_id` of the request: its answer, or a later message of its stream. */
  received(message: UpstreamMessage): void
  /** Called instead for a message that is larger than MAX_UPSTREAM_MESSAGE_BYTES. Absent if no browser gets the messages. */
  tooBig?(message: UpstreamMessage): void
  /** The connection has ended. Nothing more will come. */
  lost(): void
}

/** The user of a connection. */
export interface LinkOwner {
  /** `stream` or `request`, for metrics and logs. */
  readonly kind: string
  /** Whether the connection must come back by itself, and stay although nothing is asked. */
  isNeeded(): boolean
  opened(): void
  /** A message of a stream that belongs to no requester. */
  unclaimed(reqId: number, subscriptionId: string): void
  /** Called after all requesters have been told. */
  lost(): void
}
