import { parseRedisUrl, redisAccess, type RedisNode } from '../config/redis-address.ts'
import type { CheckResult } from '../config/setting-rule.ts'
import { addressOf } from './links/cluster-slots.ts'
import { withConnection } from './links/connection.ts'
import { replicasOf } from './links/link-to.ts'
import { NEEDS } from './servers/rights.ts'
import { probeMasters } from './probe.ts'
import { nodeOptions, replyCode } from './links/redis-link.ts'
import { serves } from './servers/server-check.ts'

/** The timeout of each server. */
const TRY_MS = 3000

/** The answers of the servers to credentials. */
interface Trial {
  readonly isServed: boolean
  /** Why they are of no use, or of less use than others. */
  readonly faults: readonly string[]
  /** The servers that do not answer. */
  readonly silent: readonly string[]
}

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
  const tryOut = async (tried: string): Promise<Trial> =>
    trialOf(await probeMasters(tried, { timeoutMs: TRY_MS, replicas, hasSubjects: true }))
  const [next, now] = await Promise.all([tryOut(url), tryOut(present)])
  const fault = next.faults.find((each) => !now.faults.includes(each))
  if (fault !== undefined) return fault
  if (!next.isServed) return next.silent[0] ?? next.faults[0] ?? 'no server replies'
  for (const refusal of await refusingReplicas(url)) warn(refusal)
  return undefined
}

/** The replicas that refuse the credentials of an address. One that is promoted is then reached with the former ones alone. */
async function refusingReplicas(url: string): Promise<string[]> {
  const address = parseRedisUrl(url)
  if (address === undefined) return []
  const access = redisAccess(url)
  const tryOut = async (node: RedisNode): Promise<string[]> => {
    try {
      await withConnection(nodeOptions(node, access), TRY_MS, (connection) => connection.ping())
      return []
    } catch (error) {
      const code = replyCode(error)
      return code === undefined
        ? []
        : [`the replica ${addressOf(node)} refuses the new credentials of REDIS_URL (${code})`]
    }
  }
  return (await Promise.all((await replicasOf(address, access)).map(tryOut))).flat()
}

function trialOf({ masters, others }: Awaited<ReturnType<typeof probeMasters>>): Trial {
  const reached = masters.filter(({ isReached }) => isReached)
  const faults = reached.flatMap(({ results }) => results).filter(isFault)
  const silent = [...masters.filter(({ isReached }) => !isReached).flatMap(({ results }) => results), ...others]
  return {
    isServed: masters.some(serves),
    faults: faults.map(({ message }) => message),
    silent: silent.filter(({ is }) => is === 'failed').map(({ message }) => message),
  }
}

function isFault({ is, advice }: CheckResult): boolean {
  return is === 'failed' || advice === NEEDS.sharing.advice || advice === NEEDS.confirming.advice
}
