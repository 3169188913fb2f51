import { Counter, Gauge, Histogram, type Registry } from 'prom-client'
import { STORE_FAILURES, WRITE_REFUSALS, type StoreFacts, type StoreObserver } from './store-observer.ts'

/** Seconds: from a round trip in the same building to what no request waits for. */
const BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 1.5]

/** Where the answers come from that are asked for only when somebody asks for the metrics. */
interface Source {
  isUp: () => boolean
  nearCache: () => {
    readonly hits: number
    readonly misses: number
    readonly sessions: number
    readonly bytes: number
  }
  facts: () => Promise<StoreFacts | undefined>
}

/** The metrics of the session store and the near cache. What is returned is told by the store, and is to be told where to ask. */
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
  const gauge = (name: string, help: string, read: () => number, aggregator: 'sum' | 'min' = 'sum') =>
    registry.registerMetric(
      new Gauge({
        ...{ name, help, aggregator, registers: [] },
        collect() {
          this.set(read())
        },
      }),
    )
  // Of several processes, the one that has lost it tells.
  gauge('bff_session_store_up', 'Whether the session store answers', () => Number(source.isUp()), 'min')
  gauge('bff_near_cache_sessions', 'Sessions held near', () => source.nearCache().sessions)
  gauge('bff_near_cache_bytes', 'About how many bytes they take', () => source.nearCache().bytes)
  registry.registerMetric(
    new Counter({
      name: 'bff_near_cache_lookups_total',
      help: 'Sessions looked up in the near cache, by outcome',
      labelNames: ['outcome'],
      registers: [],
      collect() {
        this.reset()
        const { hits, misses } = source.nearCache()
        this.inc({ outcome: 'hit' }, hits)
        this.inc({ outcome: 'miss' }, misses)
      },
    }),
  )
}

/** What only the store knows, and all processes say alike. Without a value while it does not say. */
function addFacts(registry: Registry, source: Source): void {
  const gauge = (name: string, help: string, read: (facts: StoreFacts) => number | undefined) =>
    registry.registerMetric(
      new Gauge({
        ...{ name, help, aggregator: 'max', registers: [] },
        async collect() {
          const facts = await source.facts()
          const value = facts && read(facts)
          if (value === undefined) this.remove()
          else this.set(value)
        },
      }),
    )
  gauge(
    'bff_sessions',
    'Sessions that are alive, of all instances together: every instance says the same. An estimate above 500 keys',
    ({ sessions }) => sessions,
  )
  gauge(
    'bff_session_store_memory_used_bytes',
    'What counts against the limit of memory of the session store; of a Cluster, on its fullest master',
    ({ memory }) => memory?.usedBytes,
  )
  gauge(
    'bff_session_store_memory_max_bytes',
    'That limit (maxmemory); 0: there is none',
    ({ memory }) => memory?.maxBytes,
  )
}

function createObserver(registry: Registry): StoreObserver {
  const registers = [registry]
  const durations = new Histogram({
    name: 'bff_session_store_request_duration_seconds',
    help: 'Round trips to the session store, failed ones too; most calls make none',
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
  // From the start, so that the first is seen as an increase.
  for (const kind of STORE_FAILURES) errors.inc({ kind }, 0)
  for (const reason of WRITE_REFUSALS) refusedWrites.inc({ reason }, 0)
  return {
    asked: (seconds) => durations.observe(seconds),
    failed: (kind) => errors.inc({ kind }),
    refusedWrite: (reason) => refusedWrites.inc({ reason }),
  }
}
