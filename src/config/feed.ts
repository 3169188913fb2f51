import {
  mapped,
  oneOf,
  problemsWhere,
  seconds,
  whole,
  withDefault,
  type SettingProblem,
  type ValuesOf,
} from './setting-rule.ts'

/** The settings of the shared feed (docs/reference.md, Shared market data). */
export const feedSettings = {
  isShared: withDefault(
    'PUBLIC_FEED',
    'relay',
    mapped(oneOf('relay', 'shared'), (word) => word === 'shared'),
  ).means('Upstream sockets of /ws/public: relay = one for each browser; shared = a few for all'),
  cacheMs: seconds('FEED_CACHE_SECONDS', 5, [0, 3600]).means(
    'How long the shared feed keeps a response that is the same for everybody; 0 = not at all',
  ),
  maxSubscriptions: whole('FEED_SUBSCRIPTIONS', 100, [1, 10_000]).means('Streams of one browser in the shared feed'),
  requestsPerMinute: whole('FEED_REQUESTS_PER_MINUTE', 60, [1, 1_000_000]).means(
    'Requests of one browser that the shared feed sends upstream in a minute',
  ),
  maxOwnSockets: whole('FEED_MAX_OWN_SOCKETS', 200, [0, 100_000]).means(
    'Upstream sockets for requests that the shared feed cannot share, one for each browser that needs it, per process',
  ),
  subscriptionsPerSocket: whole('FEED_SUBSCRIPTIONS_PER_SOCKET', 100, [1, 10_000]).means(
    'Subscriptions that the shared feed holds on one upstream socket',
  ),
  maxSockets: whole('FEED_MAX_SOCKETS', 20, [1, 1000]).means(
    'Upstream sockets with subscriptions of the shared feed, per process',
  ),
  lingerMs: seconds('FEED_LINGER_SECONDS', 10, [0, 3600]).means(
    'How long the shared feed keeps a subscription that no browser uses',
  ),
  conflateBytes: whole('FEED_CONFLATE_BYTES', 65_536, [1024, 1_073_741_824]).means(
    'Bytes waiting for a browser before the shared feed keeps only the newest message of each stream for it',
  ),
  reconnectSpreadMs: seconds('FEED_RECONNECT_SPREAD_SECONDS', 10, [0, 600]).means(
    'Time over which the shared feed closes the browsers that may have missed something while upstream was lost',
  ),
}

type FeedValues = ValuesOf<typeof feedSettings>

/** Lowers defaults that contradict other settings. Values that were set never do. */
export function feedConfig(feed: FeedValues, maxBufferedBytes: number): FeedValues {
  const { maxSubscriptions, maxSockets, subscriptionsPerSocket, conflateBytes } = feed
  return {
    ...feed,
    maxSubscriptions: Math.min(maxSubscriptions, maxSockets * subscriptionsPerSocket),
    conflateBytes: conflateBytes < maxBufferedBytes ? conflateBytes : Math.floor(maxBufferedBytes / 2),
  }
}

/** Finds contradictions between settings. Those of a feed that is off do not matter, and the defaults give way ({@link feedConfig}). */
export function feedChecks(
  feed: Partial<FeedValues>,
  maxBufferedBytes = Infinity,
  raw: Readonly<Record<string, string>>,
): SettingProblem[] {
  if (feed.isShared !== true) return []
  const { conflateBytes = 0, maxSubscriptions = 0, maxSockets = Infinity, subscriptionsPerSocket = Infinity } = feed
  return problemsWhere([
    [
      'FEED_CONFLATE_BYTES',
      raw['FEED_CONFLATE_BYTES'] !== undefined && conflateBytes >= maxBufferedBytes,
      'must be less than MAX_BUFFERED_BYTES, from which on a slow browser is cut off',
    ],
    [
      'FEED_SUBSCRIPTIONS',
      raw['FEED_SUBSCRIPTIONS'] !== undefined && maxSubscriptions > maxSockets * subscriptionsPerSocket,
      'must not be more than FEED_MAX_SOCKETS × FEED_SUBSCRIPTIONS_PER_SOCKET, which all browsers share',
    ],
  ])
}
