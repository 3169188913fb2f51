import { minuteOf, SUNDAY, WEDNESDAY } from './calendar.ts'
import { EVENTS } from './instance.ts'
import type { Harm } from './week.ts'

/** A harm without the minute at which it begins. */
type Kind = Omit<Harm, 'since'>

/** At three processes together, in a minute. */
const together = (perMinute: number): number => perMinute / 3
const none = (prefix: string): Record<string, number> =>
  Object.fromEntries(Object.keys(EVENTS).flatMap((event) => (event.startsWith(prefix) ? [[event, 0]] : [])))
/** All calls of an ordinary day, of whatever kind. */
const CALLS = 550

/** For each row of the table in the runbook, what it is in the simulated week. */
export const HARMS: Readonly<Record<string, Kind>> = {
  'Redis, or a master of a Cluster, is gone, or does not allow what is needed': { isStoreAway: true },
  'Redis refuses writes': { events: { ...none('login.'), 'store.refusedWrite': together(4) } },
  'too few replicas confirm the records of orders': { events: { 'store.unconfirmed': together(4) } },
  'Redis loses the sessions of forty users a minute': { events: { 'session.gone': together(40) } },
  'Redis and all instances start anew, and Redis is empty': {
    gauges: {
      'bff_session_store_info{store="0a1b2c3d"}': () => undefined,
      'bff_session_store_info{store="9f8e7d6c"}': () => 1,
    },
  },
  'no instance responds': { isUnreachable: true },
  'the provider fails every login, ten a minute': {
    events: { ...none('login.'), 'login.provider_unavailable': together(10) },
  },
  'the provider fails every login, one in ten minutes': {
    events: { ...none('login.'), 'login.provider_unavailable': together(0.1) },
  },
  'the provider refuses this client': { events: { ...none('login.'), 'login.invalid_client': together(4) } },
  'upstream fails a tenth of the calls': {
    events: {
      'read.fast': (ordinary) => 0.9 * ordinary,
      'read.serverError': (ordinary, { activity }) => ordinary + 0.1 * CALLS * activity,
    },
  },
  'upstream takes 5 s for each call': {
    events: { 'read.fast': 0, 'read.slow': (_, { activity }) => CALLS * activity },
  },
  'upstream refuses all orders': { events: { 'order.answered': 0, 'order.refused': together(10) } },
  'the shared feed has lost upstream': {
    gauges: { bff_feed_upstream_sockets: () => 0, bff_feed_retrying_sockets: () => 2 },
  },
  'an instance is not ready': { place: 1, gauges: { bff_ready: () => 0 } },
  'an instance dies every minute': {
    place: 1,
    gauges: { process_start_time_seconds: ({ minute }) => 700_000 + Math.floor(minute) * 60 },
  },
  'one process dies': { place: 1, gauges: { process_start_time_seconds: () => 0 } },
  'half of the logins are turned away by a limit': {
    events: { 'login.rate_limited': (_, { activity }) => 6 * activity },
  },
  'an instance has nine tenths of the sockets that are not reserved': {
    place: 1,
    gauges: { 'bff_relays{kind="public"}': () => 13_500 },
  },
  'an instance closes sockets because too much waits for them': { place: 1, events: { 'memory.public': 6 } },
  'nothing reads the log': { gauges: { bff_log_waiting_bytes: () => 12_000_000 } },
  'no request arrives any more': {
    events: { ...none('read.'), ...none('order.'), ...none('page.'), ...none('login.'), ...none('socket.') },
  },
}

/** A harm begins on an afternoon, or in a quiet night while the market is closed. */
const AFTERNOON = minuteOf(WEDNESDAY, 14, 30)
const NIGHT = minuteOf(SUNDAY, 3)
/** What is a part of the calls, or of the logins, needs many of them; what is about rare ones needs few. */
const ONLY: Readonly<Record<string, number>> = {
  'upstream fails a tenth of the calls': AFTERNOON,
  'upstream takes 5 s for each call': AFTERNOON,
  'half of the logins are turned away by a limit': AFTERNOON,
  'no request arrives any more': AFTERNOON,
  'the provider fails every login, one in ten minutes': NIGHT,
}
/** The minutes of the week at which a harm is injected. */
export const timesOf = (harm: string): readonly number[] => {
  const only = ONLY[harm]
  return only === undefined ? [AFTERNOON, NIGHT] : [only]
}
