import { Counter, Histogram, type Registry } from 'prom-client'
import { scrapedCounter, scrapedGauge } from './scraped-metrics.ts'
import { STORE_FAILURES, WRITE_REFUSALS, type StoreFacts, type StoreObserver } from './store-observer.ts'

/** In seconds, from a round trip in the same building to longer than any request waits. */
const BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 1.5]

/** What a scrape calls. The owners of the store and of the near cache replace these functions. */
interface Source {
  isUp: () => boolean
  nearCache: () => Readonly<Record<'hits' | 'misses' | 'sessions' | 'bytes', number>>
  facts: () => Promise<StoreFacts | undefined>
}

/** Creates the metrics of the session store and the near cache. The store notifies `observer`. */
export function createSessionStoreMetrics(registry: Registry): Source & { readonly observer: StoreObserver } {
  const source: Source = {
    isUp: () => true,
    nearCache: () => ({ hits: 0, misses: 0, sessions: 0, bytes: 0 }),
    facts: async () => undefined,
  }
  addNearCache(registry, source)
  addFacts(registry, source)
  return Object.assign(source, { observer: createObserver(registry) })
}

function addNearCache(registry: Registry, source: Source): void {
  const gauge = scrapedGauge.bind(undefined, registry)
  // Of several processes, one that has lost the store suffices to report it as down.
  gauge('bff_session_store_up', '1 while Redis responds', () => Number(source.isUp()), 'min')
  gauge('bff_near_cache_sessions', 'Sessions in the near cache of the process', () => source.nearCache().sessions)
  gauge('bff_near_cache_bytes', 'Approximate memory that the near cache uses', () => source.nearCache().bytes)
  scrapedCounter(
    registry,
    'bff_near_cache_lookups_total',
    'Lookups in the near cache: a hit, or a miss, which reads from Redis',
    ['outcome'],
    () => {
      const { hits, misses } = source.nearCache()
      return [
        [{ outcome: 'hit' }, hits],
        [{ outcome: 'miss' }, misses],
      ]
    },
  )
}

/** Adds what only the servers of the store know. All processes report the same, or no value while it is unknown. */
function addFacts(registry: Registry, source: Source): void {
  const gauge = (name: string, help: string, read: (facts: StoreFacts) => number | undefined) => {
    const readFacts = async () => {
      const facts = await source.facts()
      return facts && read(facts)
    }
    scrapedGauge(registry, name, help, readFacts, 'max')
  }
  gauge(
    'bff_sessions',
    'Live sessions of all instances together; take the max. Exact while Redis has 500 keys or fewer, above that an estimate ' +
      'from 250 random keys, to about 6 %',
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

function createObserver(registry: Registry): StoreObserver {
  const registers = [registry]
  const durations = new Histogram({
    name: 'bff_session_store_request_duration_seconds',
    help: 'Round trips to Redis, including failed ones. Most calls make none',
    buckets: BUCKETS,
    registers,
  })
  const errors = new Counter({
    name: 'bff_session_store_errors_total',
    help:
      'Requests to Redis that failed, by kind: down (not sent, since there is no connection), timeout, lost (the connection ' +
      'broke), refused, unconfirmed (too few replicas confirmed the record of an Idempotency-Key, or calls with one are ' +
      'refused for that reason)',
    labelNames: ['kind'],
    registers,
  })
  const refusedWrites = new Counter({
    name: 'bff_session_store_refused_writes_total',
    help: 'Writes that Redis refused, by reason: oom (it is full), misconf (its disk), noreplicas, readonly',
    labelNames: ['reason'],
    registers,
  })
  // Without a series at 0, an alert on an increase would miss the first failure.
  for (const kind of STORE_FAILURES) errors.inc({ kind }, 0)
  for (const reason of WRITE_REFUSALS) refusedWrites.inc({ reason }, 0)
  return {
    asked: (seconds) => durations.observe(seconds),
    failed: (kind) => errors.inc({ kind }),
    refusedWrite: (reason) => refusedWrites.inc({ reason }),
  }
}
