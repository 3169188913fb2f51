import { createHmac } from 'node:crypto'
import type { Instruments } from './instruments.ts'
import { STORE_FAILURES, WRITE_REFUSALS, type StoreFacts, type StoreObserver } from './store-observer.ts'

/** In seconds, from a round trip in the same building to longer than any request waits. */
const BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 1.5]

/** Hexadecimal digits: 32 bits tell two stores apart. */
const DIGITS = 8

/** A scrape asks these, which the owners of the store and of the near cache replace. */
interface Source {
  store: {
    condition(): {
      readonly share: number
      readonly clock: { readonly hereAheadMs: number | undefined; readonly mastersDifferMs: number }
    }
    facts(): Promise<StoreFacts | undefined>
  }
  nearCache: () => Readonly<Record<'hits' | 'misses' | 'sessions' | 'bytes', number>>
  /** A random value that the store has as long as it has anything; undefined while it does not reply. */
  mark: () => Promise<string | undefined>
}

/** Creates the metrics of the session store and the near cache. The store notifies `observer`. */
export function createSessionStoreMetrics(make: Instruments): Source & { readonly observer: StoreObserver } {
  const source: Source = {
    store: {
      condition: () => ({ share: 1, clock: { hereAheadMs: undefined, mastersDifferMs: 0 } }),
      facts: async () => undefined,
    },
    nearCache: () => ({ hits: 0, misses: 0, sessions: 0, bytes: 0 }),
    mark: async () => undefined,
  }
  addNearCache(make, source)
  addFacts(make, source)
  addMark(make, source)
  return Object.assign(source, { observer: createObserver(make) })
}

function addNearCache(make: Instruments, source: Source): void {
  // One of several processes that has lost the store suffices to report it as down.
  make.scrapedGauge(
    'bff_session_store_up',
    '1 while the reads and writes that the server needs succeed on Redis, 0 while they fail; in a Cluster the part of its masters ' +
      'on which they succeed',
    () => source.store.condition().share,
    'min',
  )
  make.scrapedGauge(
    'bff_session_store_clock_difference_seconds',
    'How far the clock of the machine is from that of Redis, or those of its masters are apart, whichever is more',
    () => {
      const { hereAheadMs = 0, mastersDifferMs } = source.store.condition().clock
      return Math.max(Math.abs(hereAheadMs), mastersDifferMs) / 1000
    },
    'max',
  )
  make.scrapedGauge(
    'bff_near_cache_sessions',
    'Sessions in the near cache of the process',
    () => source.nearCache().sessions,
  )
  make.scrapedGauge(
    'bff_near_cache_bytes',
    'Approximate memory that the near cache uses',
    () => source.nearCache().bytes,
  )
  make.scrapedCounter(
    'bff_near_cache_lookups_total',
    'Lookups in the near cache: a hit, or a miss, which reads from Redis',
    () => {
      const { hits, misses } = source.nearCache()
      return [
        [{ outcome: 'hit' }, hits],
        [{ outcome: 'miss' }, misses],
      ]
    },
    ['outcome'],
  )
}

/** Adds what only the servers of the store know. All processes report the same, or no value while it is unknown. */
function addFacts(make: Instruments, source: Source): void {
  const gauge = (name: string, help: string, read: (facts: StoreFacts) => number | undefined): void => {
    const readFacts = async () => {
      const facts = await source.store.facts()
      return facts && read(facts)
    }
    make.scrapedGauge(name, help, readFacts, 'max')
  }
  gauge(
    'bff_sessions_estimate',
    'Live sessions of all instances together; take the max. Exact while Redis has 500 keys or fewer, above that an estimate ' +
      'from 250 random keys: its standard error is 6 % where half of the keys are sessions, and 45 % where each session has 50 ' +
      'records of orders',
    ({ sessions }) => sessions,
  )
  gauge(
    'bff_session_store_memory_used_bytes',
    'Memory of Redis that counts against maxmemory, in a Cluster of its fullest master; take the max',
    ({ memory }) => memory?.usedBytes,
  )
  gauge(
    'bff_session_store_memory_max_bytes',
    'The maxmemory of Redis, 0 = no limit; take the max',
    ({ memory }) => memory?.maxBytes,
  )
}

/** Adds a metric that reveals a store that was emptied, or replaced by another one. */
function addMark(make: Instruments, source: Source): void {
  make.scrapedGauge(
    'bff_session_store_info',
    'Always 1, with a name that Redis keeps as long as it keeps anything: another name, another Redis, or one that was emptied',
    async () => {
      const mark = await source.mark()
      return mark === undefined ? [] : [[{ store: createHmac('sha256', mark).digest('hex').slice(0, DIGITS) }, 1]]
    },
    'first',
    ['store'],
  )
}

function createObserver(make: Instruments): StoreObserver {
  const durations = make.histogram(
    'bff_session_store_request_duration_seconds',
    'Round trips to Redis, including failed ones. Most calls make none',
    BUCKETS,
  )
  const errors = make.counterFrom0(
    'bff_session_store_errors_total',
    'Requests to Redis that failed, by kind: down (not sent, since there is no connection), timeout, lost (the connection ' +
      'broke), refused, unconfirmed (too few replicas confirmed the record of an Idempotency-Key, or calls with one are ' +
      'refused for that reason)',
    STORE_FAILURES.map((kind) => ({ kind })),
  )
  const refusedWrites = make.counterFrom0(
    'bff_session_store_refused_writes_total',
    'Writes that Redis refused, by reason: oom (it is full), misconf (its disk), noreplicas, readonly',
    WRITE_REFUSALS.map((reason) => ({ reason })),
  )
  return {
    asked: (seconds) => durations.observe(seconds),
    failed: (kind) => errors.inc({ kind }),
    refusedWrite: (reason) => refusedWrites.inc({ reason }),
  }
}
