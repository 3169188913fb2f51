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
  gauge('bff_session_store_up', 'Whether the session store responds', () => Number(source.isUp()), 'min')
  gauge('bff_near_cache_sessions', 'Sessions in the near cache', () => source.nearCache().sessions)
  gauge('bff_near_cache_bytes', 'Approximate bytes used by the near cache', () => source.nearCache().bytes)
  scrapedCounter(
    registry,
    'bff_near_cache_lookups_total',
    'Sessions looked up in the near cache, by outcome',
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
    'Live sessions of all instances together: every instance reports the same. An estimate above 500 keys',
    ({ sessions }) => sessions,
  )
  gauge(
    'bff_session_store_memory_used_bytes',
    'Memory that counts against the limit of the session store; in a Cluster, of its fullest master',
    ({ memory }) => memory?.usedBytes,
  )
  gauge(
    'bff_session_store_memory_max_bytes',
    'Memory limit of the session store (maxmemory); 0 = no limit',
    ({ memory }) => memory?.maxBytes,
  )
}

function createObserver(registry: Registry): StoreObserver {
  const registers = [registry]
  const durations = new Histogram({
    name: 'bff_session_store_request_duration_seconds',
    help: 'Round trips to the session store, including failed ones; most calls make none',
    buckets: BUCKETS,
    registers,
  })
  const errors = new Counter({
    name: 'bff_session_store_errors_total',
    help: 'Requests to the session store that failed, by kind',
    labelNames: ['kind'],
    registers,
  })
  const refusedWrites = new Counter({
    name: 'bff_session_store_refused_writes_total',
    help: 'Writes that the session store refused, by reason',
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
