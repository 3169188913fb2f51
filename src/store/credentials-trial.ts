import { parseRedisUrl, redisAccess, type RedisNode } from '../config/redis-address.ts'
import type { CheckResult } from '../config/setting-rule.ts'
import { addressOf } from './cluster-slots.ts'
import { withConnection } from './connection.ts'
import { serversOf } from './link-to.ts'
import { PERMISSION_ADVICE, WAIT_ADVICE } from './permissions.ts'
import { probeRedis } from './probe.ts'
import { nodeOptions, replyCode } from './redis-link.ts'

/** The timeout of each server. */
const TRY_MS = 3000

/** The codes of a server that refuses a user. */
const REFUSALS: ReadonlySet<string | undefined> = new Set(['WRONGPASS', 'NOAUTH', 'NOPERM'])

/**
 * Tries the new credentials of REDIS_URL on new connections to all masters. They may not fail where the present ones do not, and
 * may not have fewer rights. A master that does not answer decides nothing, as long as another one does.
 * @param warn told of each replica that refuses them, unless they cannot be used anyway
 * @returns why they cannot be used; undefined if they can. Never rejects
 */
export async function tryCredentials(
  url: string,
  present: string,
  replicas: number,
  warn: (message: string) => void = () => undefined,
): Promise<string | undefined> {
  const address = parseRedisUrl(url)
  if (address === undefined) return 'not the address of a Redis'
  const servers = await serversOf(address, redisAccess(url))
  const refused = await refusersAmong(servers.masters, url)
  const refusedNow = await refusersAmong(servers.masters, present)
  const refusal = refused.find((each) => !refusedNow.includes(each))
  if (refusal !== undefined) return `${refusal} refuses the new credentials`
  const probe = (tried: string): Promise<CheckResult[]> => probeRedis(tried, { timeoutMs: TRY_MS, replicas })
  const [next, now] = await Promise.all([probe(url), probe(present)])
  const known = faultsOf(now)
  // A replica that REDIS_URL names decides nothing.
  const isOfReplica = (fault: string): boolean =>
    servers.replicas.some((replica) => fault.startsWith(`${addressOf(replica)} `))
  const fault = faultsOf(next).find((each) => !known.includes(each) && !isOfReplica(each))
  if (fault !== undefined) return fault
  if (next.every(({ is }) => is === 'failed')) return faultsOf(next)[0] ?? 'no server replies'
  for (const replica of await refusersAmong(servers.replicas, url)) {
    warn(`the replica ${replica} refuses the new credentials of REDIS_URL`)
  }
  return undefined
}

function faultsOf(results: readonly CheckResult[]): string[] {
  return results
    .filter(({ is, advice }) => is === 'failed' || advice === PERMISSION_ADVICE || advice === WAIT_ADVICE)
    .map(({ message }) => message)
}

/** The addresses of the servers that answer, and do not take the credentials of a URL. */
async function refusersAmong(servers: readonly RedisNode[], url: string): Promise<string[]> {
  const tryOut = async (server: RedisNode): Promise<string[]> => {
    try {
      await withConnection(nodeOptions(server, redisAccess(url)), TRY_MS, (connection) => connection.ping())
      return []
    } catch (error) {
      return REFUSALS.has(replyCode(error)) ? [addressOf(server)] : []
    }
  }
  return (await Promise.all(servers.map(tryOut))).flat()
}
