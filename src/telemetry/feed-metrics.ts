import type { Registry } from 'prom-client'
import { Instruments } from './instruments.ts'

/** The gauges, by what the feed calls them. */
const GAUGES = {
  upstreamSockets: ['bff_feed_upstream_sockets', 'Open upstream sockets that browsers share'],
  retryingSockets: [
    'bff_feed_retrying_sockets',
    'Upstream sockets of the feed that were lost or refused, and that it tries to open again',
  ],
  streams: ['bff_feed_streams', 'Streams that browsers share, one for each symbol of a request'],
  takenPlaces: ['bff_feed_taken_places', 'Places that the streams take on upstream sockets'],
  places: [
    'bff_feed_stream_limit',
    'Limit of bff_feed_taken_places (FEED_MAX_SOCKETS × FEED_SUBSCRIPTIONS_PER_SOCKET)',
  ],
  subscribers: ['bff_feed_subscribers', 'Subscriptions of browsers to shared streams'],
  ownSockets: ['bff_feed_own_sockets', 'Upstream sockets that serve one browser, open or being opened'],
  ownSocketLimit: ['bff_feed_own_socket_limit', 'Limit of bff_feed_own_sockets (FEED_MAX_OWN_SOCKETS)'],
} as const

type Counts = Record<keyof typeof GAUGES, () => number>

/** Registers the metrics of shared market data. Without PUBLIC_FEED=shared they do not exist. */
export function createFeedMetrics(registry: Registry) {
  const make = new Instruments(registry)
  const names = Object.keys(GAUGES) as (keyof Counts)[]
  const counts = Object.fromEntries(names.map((key) => [key, () => 0])) as unknown as Counts
  for (const key of names) make.scrapedGauge(GAUGES[key][0], GAUGES[key][1], () => counts[key]())
  // A plain number, since it is counted for every message.
  const conflated = { messages: 0 }
  make.scrapedCounter(
    'bff_feed_conflated_messages_total',
    'Messages of streams that a slow browser did not get, because a newer one replaced them',
    () => conflated.messages,
  )
  return {
    /** Replaced by the owner of the feed. */
    counts,
    conflated,
    /** Counts a request that needed none upstream. */
    hit: make.tally(
      'bff_feed_cache_hits_total',
      'Requests of browsers that needed none upstream: an equal one was on its way or just answered, or its stream was there',
      'operation',
    ),
    reconnects: make.counter('bff_feed_reconnects_total', 'Shared upstream sockets that were lost and opened again'),
    unattributed: make.counter(
      'bff_feed_unattributed_messages_total',
      "Messages from upstream that answer no request. If it grows steadily, upstream's messages are not what the feed relies on",
    ),
    refused: make.counter(
      'bff_feed_refused_resubscriptions_total',
      'Times that upstream refused with RateLimit to renew a subscription after a loss. It is tried again as long as browsers ' +
        'may want it',
    ),
  }
}

/** The metrics of shared market data. */
export type FeedMetrics = ReturnType<typeof createFeedMetrics>
