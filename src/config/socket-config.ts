import { seconds, splitList } from './setting-formats.ts'
import type { Settings } from './settings.ts'

/** The settings of browser sockets, parsed. */
export function relayConfig(settings: Settings, wsUrl: string) {
  return {
    wsUrl,
    otpUrlPointer: settings.OTP_URL_POINTER,
    otpHosts: settings.OTP_HOSTS === undefined ? [] : splitList(settings.OTP_HOSTS),
    maxPerSession: settings.MAX_RELAYS_PER_SESSION,
    maxSessionSockets: settings.MAX_SESSION_SOCKETS,
    maxSessionSocketsPerIp: settings.MAX_SESSION_SOCKETS_PER_IP,
    maxPublicPerIp: settings.MAX_PUBLIC_RELAYS_PER_IP,
    publicHandshakesPerMinute: settings.PUBLIC_HANDSHAKES_PER_MINUTE ?? 4 * settings.MAX_PUBLIC_RELAYS_PER_IP,
    maxRelays: settings.MAX_RELAYS,
    maxBufferedBytes: settings.MAX_BUFFERED_BYTES,
    maxMessageBytes: settings.MAX_MESSAGE_BYTES,
    maxUpstreamMessageBytes: settings.MAX_UPSTREAM_MESSAGE_BYTES,
    slowConsumerMs: seconds(settings.SLOW_CONSUMER_SECONDS),
  }
}

/** The settings of the shared feed, parsed. Defaults that contradict other settings are lowered; set values never do. */
export function feedConfig(settings: Settings) {
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
