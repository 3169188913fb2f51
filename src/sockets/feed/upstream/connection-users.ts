import type { UpstreamMessage } from '../wire/index.ts'

/** The text of a request with the given `req_id`. */
export type WriteRequest = (reqId: number) => Buffer | string

/** What hears the messages that belong to one upstream request. */
export interface Listener {
  /** With its first message, its `req_id` is released. */
  readonly isAnsweredOnce?: boolean
  /** Takes a message with the `req_id` of the request: its answer, or a later message of its stream. */
  received(message: UpstreamMessage): void
  /** Called instead for a message that is larger than MAX_UPSTREAM_MESSAGE_BYTES. Absent if no browser gets the messages. */
  tooBig?(message: UpstreamMessage): void
  /** Called every ten seconds while the connection is open. Absent if there is nothing to look after. */
  beat?(reqId: number): void
  /** The connection has ended. Nothing more will come. */
  lost?(): void
}

/** The user of a connection. */
export interface ConnectionOwner {
  /** `stream` or `request`, for metrics and logs. */
  readonly kind: string
  /** Whether the connection must come back by itself, and stay although nothing is asked. */
  isNeeded(): boolean
  opened(): void
  /** Called every ten seconds while the connection is open. */
  beat?(): void
  /** A message of a stream that belongs to no listener. */
  unclaimed?(reqId: number, subscriptionId: string): void
  /** Called after all listeners have been told. */
  lost?(): void
}
