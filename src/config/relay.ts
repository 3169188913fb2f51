import { formats } from './setting-formats.ts'
import { optional, required, seconds, whole, wholeFrom, withDefault } from './setting-rule.ts'

const MIB = 1_048_576

/** The settings of browser sockets. */
export const relaySettings = {
  wsUrl: required('WS_URL', formats.wsBase, 'wss').means('Base address of the upstream WebSocket API'),
  otpUrlPointer: withDefault('OTP_URL_POINTER', '/data/url', formats.jsonPointer).means(
    'JSON pointer to the socket URL in the OTP response',
  ),
  otpHosts: optional('OTP_HOSTS', formats.hosts).means(
    'Hosts (host or host:port) that OTP URLs may name besides that of WS_URL',
  ),
  maxPerSession: whole('MAX_RELAYS_PER_SESSION', 5, [1, 1000]).means(
    'Open trading sockets of one session, on all instances together',
  ),
  maxSessionSockets: whole('MAX_SESSION_SOCKETS', 20, [1, 1000]).means(
    'Open session sockets of one subject, else of one session, per process',
  ),
  maxSessionSocketsPerIp: whole('MAX_SESSION_SOCKETS_PER_IP', 200, [1, 100_000]).means(
    'Open session sockets of one client address (IPv6: /64), only those of sessions without a subject, per process',
  ),
  maxPublicPerIp: whole('MAX_PUBLIC_RELAYS_PER_IP', 50, [1, 100_000]).means(
    'Open public sockets of one client address, per process',
  ),
  publicHandshakesPerMinute: optional('PUBLIC_HANDSHAKES_PER_MINUTE', wholeFrom(0, 1_000_000)).means(
    'Public and session sockets that one client address may open in a minute, per process; 0 = no limit (default: 4 × MAX_PUBLIC_RELAYS_PER_IP)',
  ),
  maxRelays: whole('MAX_RELAYS', 20_000, [1, 1_000_000]).means(
    'Open sockets of one process; a quarter is reserved for trading',
  ),
  maxBufferedBytes: whole('MAX_BUFFERED_BYTES', MIB, [1024, 1024 * MIB]).means(
    'Bytes waiting for one peer before the other is paused',
  ),
  maxWaitingBytes: optional('MAX_WAITING_BYTES', wholeFrom(MIB, MIB * MIB)).means(
    'Bytes waiting for all peers of one process before the sockets of the slowest are closed (default: a quarter of the memory of the container, shared by WORKERS; 268435456 without such a limit)',
  ),
  maxMessageBytes: whole('MAX_MESSAGE_BYTES', 65_536, [1, 1024 * MIB]).means(
    'Largest WebSocket message from a browser',
  ),
  maxUpstreamMessageBytes: whole('MAX_UPSTREAM_MESSAGE_BYTES', MIB, [1, 1024 * MIB]).means(
    'Largest WebSocket message from upstream',
  ),
  slowConsumerMs: seconds('SLOW_CONSUMER_SECONDS', 10, [1, 3600]).means(
    'A browser that keeps upstream paused for longer is cut off',
  ),
}
