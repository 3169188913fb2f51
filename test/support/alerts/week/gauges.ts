import { ROTATED_AT } from './calendar.ts'
import type { Moment } from './instance.ts'

const MIB = 1_048_576
const isStarting = ({ age }: Moment): boolean => age < 0.3
/** Sockets come back to a new process little by little. */
const filled = ({ activity, age }: Moment, sockets: number): number =>
  Math.round(sockets * activity * Math.min(1, 0.3 + age / 60))

/** An instance takes the new secrets a minute after the one before. */
const isRotated = ({ minute, place }: Moment): boolean => minute >= ROTATED_AT + place

/** Every gauge of a process, by its series. Undefined: it has none now. */
export const GAUGES: readonly (readonly [series: string, value: (now: Moment) => number | undefined])[] = [
  ['bff_ready', (now) => (now.isDraining || isStarting(now) || now.isBroken ? 0 : 1)],
  ['bff_session_store_up', ({ isStoreAway }) => (isStoreAway ? 0 : 1)],
  ['bff_session_store_memory_used_bytes', ({ isStoreAway }) => (isStoreAway ? undefined : 200 * MIB)],
  ['bff_session_store_memory_max_bytes', ({ isStoreAway }) => (isStoreAway ? undefined : 512 * MIB)],
  ['bff_session_store_info{store="0a1b2c3d"}', ({ isStoreAway }) => (isStoreAway ? undefined : 1)],
  // Another Redis, which is empty.
  ['bff_session_store_info{store="9f8e7d6c"}', () => undefined],
  ['bff_relays{kind="public"}', (now) => filled(now, 1500)],
  ['bff_relays{kind="session"}', (now) => filled(now, 800)],
  ['bff_relays{kind="real"}', (now) => filled(now, 400)],
  ['bff_relays{kind="demo"}', (now) => filled(now, 200)],
  ['bff_relay_limit', () => 20_000],
  ['bff_feed_upstream_sockets', (now) => (isStarting(now) ? 0 : 2)],
  ['bff_feed_retrying_sockets', () => 0],
  ['bff_feed_taken_places', ({ activity, isMarketClosed }) => (isMarketClosed ? 20 : Math.round(100 + 300 * activity))],
  ['bff_feed_stream_limit', () => 2000],
  ['bff_feed_own_sockets', (now) => filled(now, 20)],
  ['bff_feed_own_socket_limit', () => 200],
  ['bff_upstream_budget_left{window="60"}', ({ activity }) => Math.round(270 - 60 * Math.min(activity, 3))],
  ['bff_upstream_budget_limit{window="60"}', () => 300],
  ['bff_upstream_budget_held_back{class="orders"}', () => 0],
  ['bff_upstream_budget_held_back{class="reads"}', () => 0],
  ['bff_session_secrets_info{fingerprint="0a1b2c3d"}', (now) => (isRotated(now) ? undefined : 1)],
  ['bff_session_secrets_info{fingerprint="9f8e7d6c"}', (now) => (isRotated(now) ? 1 : undefined)],
  ['bff_secret_file_refused{setting="SESSION_SECRETS"}', () => 0],
  ['bff_orders_paused{scope="all"}', () => 0],
  ['bff_orders_paused{scope="subject"}', () => 0],
  ['bff_log_waiting_bytes', ({ activity }) => Math.round(20_000 * activity)],
  ['process_open_fds', (now) => 120 + filled(now, 4600)],
  ['process_max_fds', () => 65_536],
  ['nodejs_eventloop_lag_p99_seconds', (now) => (isStarting(now) ? 0.3 : 0.06)],
  ['process_start_time_seconds', ({ minute, age }) => 700_000 + Math.round((minute - age) * 60)],
]
