import { polls } from '../../time/polls.ts'
import type { Connection, ServerInfo } from '../links/connection.ts'
import type { RedisLink } from '../links/redis-link.ts'

/** How often the masters are asked for their replication. */
const LOOK_INTERVAL_MS = 15_000
/** The first look comes soon after the start. */
const FIRST_LOOK_MS = 1000

/** What makes records of Idempotency-Keys on one server worth less than they seem, for an operator. */
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

/**
 * Asks the masters at intervals for what {@link replicationWarnings} needs. A server that is lost, or may not be asked, changes
 * nothing.
 * @returns ends the questions
 */
export function watchReplication(
  link: Pick<RedisLink, 'askMasters'>,
  replicas: number,
  warn: (warnings: readonly string[]) => void,
): () => void {
  const look = async (): Promise<void> => {
    const infos = await link.askMasters(infoOf).catch(() => undefined)
    if (infos !== undefined) warn([...new Set(infos.flatMap((info) => replicationWarnings(info, replicas)))])
  }
  return polls(look, LOOK_INTERVAL_MS, FIRST_LOOK_MS)
}

async function infoOf(master: Connection): Promise<ServerInfo> {
  const [replication, persistence] = await Promise.all([master.info('replication'), master.info('persistence')])
  return { ...replication, ...persistence }
}
