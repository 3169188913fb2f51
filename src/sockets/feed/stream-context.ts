import type { FastifyBaseLogger } from 'fastify'
import type { FeedMetrics } from '../../telemetry/feed-metrics.ts'
import type { FairShare } from './fair-share.ts'
import type { KeptBytes } from './kept-bytes.ts'
import type { OneShots } from './one-shots.ts'
import type { StreamLink } from './stream-link.ts'
import type { Stream } from './stream.ts'

/** What streams work with. */
export interface StreamContext {
  readonly feedMetrics: FeedMetrics
  readonly log: FastifyBaseLogger
  readonly oneShots: OneShots
  readonly share: FairShare
  /** How long a stream without subscribers is kept. */
  readonly lingerMs: number
  /** How long browsers take to come back after a connection was lost. */
  readonly returnMs: number
  readonly kept: KeptBytes
  /** How long a history may be given to others. */
  readonly historyMs: number
  place(stream: Stream, refusedBy: StreamLink | undefined): boolean
  lingers(stream: Stream): void
  lingersNoMore(stream: Stream): void
  /** Whoever asks for the same from now on gets a new stream. */
  retired(stream: Stream): void
  /** Nobody has the stream any more. */
  ended(stream: Stream): void
}
