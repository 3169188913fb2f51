import { seconds } from './setting-formats.ts'
import { oneOf, problemsWhere, whole, type SettingProblem, type SettingRule, type ValuesOf } from './setting-rule.ts'

/** The settings of the shared feed (docs/reference.md, Shared market data). */
export const feedRules = {
  PUBLIC_FEED: oneOf(
    'relay',
    ['relay', 'shared'],
    'Upstream sockets of /ws/public: relay = one for each browser; shared = a few for all',
  ),
  FEED_CACHE_SECONDS: whole(
    5,
    0,
    3600,
    'How long the shared feed keeps a response that is the same for everybody; 0 = not at all',
  ),
  FEED_SUBSCRIPTIONS: whole(100, 1, 10_000, 'Streams of one browser in the shared feed'),
  FEED_REQUESTS_PER_MINUTE: whole(
    60,
    1,
    1_000_000,
    'Requests of one browser that the shared feed sends upstream in a minute',
  ),
  FEED_MAX_OWN_SOCKETS: whole(
    200,
    0,
    100_000,
    'Upstream sockets for requests that the shared feed cannot share, one for each browser that needs it, per process',
  ),
  FEED_SUBSCRIPTIONS_PER_SOCKET: whole(
    100,
    1,
    10_000,
    'Subscriptions that the shared feed holds on one upstream socket',
  ),
  FEED_MAX_SOCKETS: whole(20, 1, 1000, 'Upstream sockets with subscriptions of the shared feed, per process'),
  FEED_LINGER_SECONDS: whole(10, 0, 3600, 'How long the shared feed keeps a subscription that no browser uses'),
  FEED_CONFLATE_BYTES: whole(
    65_536,
    1024,
    1_073_741_824,
    'Bytes waiting for a browser before the shared feed keeps only the newest message of each stream for it',
  ),
  FEED_RECONNECT_SPREAD_SECONDS: whole(
    10,
    0,
    600,
    'Time over which the shared feed closes the browsers that may have missed something while upstream was lost',
  ),
} as const satisfies Record<string, SettingRule>

type FeedSettings = ValuesOf<typeof feedRules> & { readonly MAX_BUFFERED_BYTES: number }

/** The settings of the shared feed, parsed. Defaults that contradict other settings are lowered; set values never do. */
export function feedConfig(settings: FeedSettings) {
  const { FEED_CONFLATE_BYTES: conflateBytes, MAX_BUFFERED_BYTES: maxBufferedBytes } = settings
  return {
    isShared: settings.PUBLIC_FEED === 'shared',
    cacheMs: seconds(settings.FEED_CACHE_SECONDS),
    maxSubscriptions: Math.min(
      settings.FEED_SUBSCRIPTIONS,
      settings.FEED_MAX_SOCKETS * settings.FEED_SUBSCRIPTIONS_PER_SOCKET,
    ),
    requestsPerMinute: settings.FEED_REQUESTS_PER_MINUTE,
    maxOwnSockets: settings.FEED_MAX_OWN_SOCKETS,
    subscriptionsPerSocket: settings.FEED_SUBSCRIPTIONS_PER_SOCKET,
    maxSockets: settings.FEED_MAX_SOCKETS,
    lingerMs: seconds(settings.FEED_LINGER_SECONDS),
    conflateBytes: conflateBytes < maxBufferedBytes ? conflateBytes : Math.floor(maxBufferedBytes / 2),
    reconnectSpreadMs: seconds(settings.FEED_RECONNECT_SPREAD_SECONDS),
  }
}

/** Finds contradictions between settings. Those of a feed that is off do not matter, and the defaults give way ({@link feedConfig}). */
export function feedChecks(settings: Partial<FeedSettings>, raw: Readonly<Record<string, string>>): SettingProblem[] {
  if (settings.PUBLIC_FEED !== 'shared') return []
  const { FEED_CONFLATE_BYTES = 0, MAX_BUFFERED_BYTES = Infinity } = settings
  const { FEED_SUBSCRIPTIONS = 0, FEED_MAX_SOCKETS = Infinity, FEED_SUBSCRIPTIONS_PER_SOCKET = Infinity } = settings
  return problemsWhere([
    [
      'FEED_CONFLATE_BYTES',
      raw['FEED_CONFLATE_BYTES'] !== undefined && FEED_CONFLATE_BYTES >= MAX_BUFFERED_BYTES,
      'must be less than MAX_BUFFERED_BYTES, from which on a slow browser is cut off',
    ],
    [
      'FEED_SUBSCRIPTIONS',
      raw['FEED_SUBSCRIPTIONS'] !== undefined && FEED_SUBSCRIPTIONS > FEED_MAX_SOCKETS * FEED_SUBSCRIPTIONS_PER_SOCKET,
      'must not be more than FEED_MAX_SOCKETS × FEED_SUBSCRIPTIONS_PER_SOCKET, which all browsers share',
    ],
  ])
}
