import { beforeDeadline } from '../../time/deadline.ts'
import { SESSION_KEYS } from '../keys.ts'
import { within } from '../../time/within.ts'
import type { Connection, ServerInfo } from '../links/connection.ts'
import { polls } from '../../time/polls.ts'
import type { RedisLink } from '../links/redis-link.ts'
import type { StoreFacts } from '../../telemetry/store-observer.ts'

/** Minimum interval between two queries of the servers, however often the metrics are scraped. */
const QUERY_INTERVAL_MS = 5000
/** A scrape waits no longer than this. */
const SCRAPE_WAIT_MS = 250
/** Timeout for the replies of the servers. */
const REPLY_TIMEOUT_MS = 2000
/** Facts older than this are not reported. */
const MAX_AGE_MS = 20_000
/** How often the masters are asked for their replication, and when first after the start. */
const [LOOK_INTERVAL_MS, FIRST_LOOK_MS] = [15_000, 1000]
/** Up to this many keys are counted one by one. */
const MAX_COUNTED = 500
/** Sample size when there are more keys. */
const SAMPLE_SIZE = 250

/**
 * Counts the session keys if there are few keys, else estimates their number from a random sample. The standard error is
 * 6 % when half of the keys are sessions, and 45 % when one in fifty is. The script takes Redis a millisecond or two, however many
 * keys there are.
 */
const COUNT_SESSIONS = `
local prefix, length = ARGV[1], tonumber(ARGV[2])
local function is_session(key) return #key == length and string.sub(key, 1, #prefix) == prefix end
local size = redis.call('DBSIZE')
local sessions = 0
if size <= ${MAX_COUNTED} then
  local seen, cursor = {}, '0'
  repeat
    local page = redis.call('SCAN', cursor, 'COUNT', ${MAX_COUNTED})
    cursor = page[1]
    for _, key in ipairs(page[2]) do
      if not seen[key] and is_session(key) then sessions = sessions + 1 end
      seen[key] = true
    end
  until cursor == '0'
  return sessions
end
for _ = 1, ${SAMPLE_SIZE} do
  local key = redis.call('RANDOMKEY')
  if key and is_session(key) then sessions = sessions + 1 end
end
return math.floor(size * sessions / ${SAMPLE_SIZE} + 0.5)`

type Memory = NonNullable<StoreFacts['memory']>

/** Facts about the masters, queried on demand and cached for a few seconds. */
export class ServerFacts {
  readonly #link: RedisLink
  #latest: { readonly facts: StoreFacts; readonly at: number } | undefined
  #queriedAt = -Infinity
  #query: Promise<void> | undefined
  #warnings: readonly string[] = []
  #endLooks: () => void = () => undefined

  constructor(link: RedisLink) {
    this.#link = link
  }

  /** Undefined when the servers have not replied for too long. Never rejects. */
  async read(): Promise<StoreFacts | undefined> {
    const now = performance.now()
    if (this.#query === undefined && now - this.#queriedAt >= QUERY_INTERVAL_MS) {
      this.#queriedAt = now
      this.#query = this.#queryServers().finally(() => (this.#query = undefined))
    }
    if (this.#query !== undefined) await within(SCRAPE_WAIT_MS, this.#query)
    const latest = this.#latest
    return latest !== undefined && performance.now() - latest.at < MAX_AGE_MS ? latest.facts : undefined
  }

  /** The latest findings of {@link watchReplication}. */
  get warnings(): readonly string[] {
    return this.#warnings
  }

  /**
   * Asks the masters at intervals for what {@link replicationWarnings} needs. While one is lost, or may not be asked, no warning is
   * withdrawn: it may be of that one.
   */
  watchReplication(replicas: number): void {
    this.#endLooks = polls(
      async () => {
        const infos = await this.#link.askMasters(replicationOf)
        const former = infos.includes(undefined) ? this.#warnings : []
        const found = infos.flatMap((info) => (info === undefined ? [] : replicationWarnings(info, replicas)))
        this.#warnings = [...new Set([...former, ...found])]
      },
      LOOK_INTERVAL_MS,
      FIRST_LOOK_MS,
    )
  }

  close(): void {
    this.#endLooks()
  }

  async #queryServers(): Promise<void> {
    // Two separate questions, because the ACL may allow only one of them.
    const [counts, memories] = await Promise.all([this.#ask(countSessions), this.#ask(memoryOf)])
    // One of the others may be full, whatever the masters say that do not reply.
    const memory = fullest(memories.filter((each) => each !== undefined))
    const sessions = counts.reduce(sum, 0)
    if (sessions === undefined && memory === undefined) return
    const facts = { ...(sessions !== undefined && { sessions }), ...(memory && { memory }) }
    this.#latest = { facts, at: performance.now() }
  }

  /** Undefined stands for a master that refuses, or does not reply in time. */
  #ask<Reply>(question: (master: Connection) => Promise<Reply>): Promise<(Reply | undefined)[]> {
    return this.#link.askMasters((master) => beforeDeadline(REPLY_TIMEOUT_MS, question(master)))
  }
}

async function countSessions(master: Connection): Promise<number> {
  const { prefix, length } = SESSION_KEYS
  return Number(await master.eval(COUNT_SESSIONS, { keys: [], arguments: [prefix, String(length)] }))
}

async function replicationOf(master: Connection): Promise<ServerInfo> {
  const [replication, persistence] = await Promise.all([master.info('replication'), master.info('persistence')])
  return { ...replication, ...persistence }
}

async function memoryOf(master: Connection): Promise<Memory> {
  return readMemory(await master.info('memory'))
}

function sum(total: number | undefined, count: number | undefined): number | undefined {
  return total === undefined || count === undefined ? undefined : total + count
}

/** The memory of the server that will be the first to refuse writes. */
function fullest(memories: readonly Memory[]): Memory | undefined {
  const share = ({ usedBytes, maxBytes }: Memory): number => (maxBytes === 0 ? 0 : usedBytes / maxBytes)
  return memories.toSorted((one, other) => share(other) - share(one) || other.usedBytes - one.usedBytes)[0]
}

/** The memory that counts against maxmemory, and maxmemory. Buffers of replicas and of the append-only file do not count. */
export function readMemory(info: ServerInfo): Memory {
  const number = (name: string): number => Number(info[name] ?? 0)
  return {
    usedBytes: Math.max(0, number('used_memory') - number('mem_not_counted_for_evict')),
    maxBytes: number('maxmemory'),
  }
}

/** Warnings for an operator of what makes records of Idempotency-Keys on one server worth less than they seem. */
export function replicationWarnings(info: ServerInfo, replicas: number): string[] {
  const warnings: string[] = []
  if (info['aof_enabled'] === '0') {
    warnings.push(
      'Redis has no append-only file: a master that restarts comes back without the records of Idempotency-Keys, and a repeated order could be sent twice. Set appendonly yes.',
    )
  }
  const connected = Number(info['connected_slaves'] ?? 0)
  if (info['role'] === 'master' && connected > replicas) {
    warnings.push(
      `replicas of Redis: ${connected}; IDEMPOTENCY_REPLICAS: ${replicas}. If a replica without the record of an Idempotency-Key is promoted, a repeated order could be sent twice. Set IDEMPOTENCY_REPLICAS to their number, unless none of them is ever promoted.`,
    )
  }
  if (info['role'] === 'master' && connected < replicas) {
    warnings.push(
      `replicas of Redis: ${connected}; IDEMPOTENCY_REPLICAS: ${replicas}. Calls with an Idempotency-Key are refused until there are more.`,
    )
  }
  return warnings
}
