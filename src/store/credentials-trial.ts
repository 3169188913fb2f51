import type { CheckResult } from '../config/setting-rule.ts'
import { PERMISSION_ADVICE, WAIT_ADVICE } from './permissions.ts'
import { probeRedis } from './probe.ts'

/** The timeout of each server. */
const TRY_MS = 3000

/** What the servers say of credentials. */
interface Trial {
  readonly isServed: boolean
  /** Why they are of no use, or of less use than others. */
  readonly faults: readonly string[]
}

/**
 * Tries the new credentials of REDIS_URL on new connections to its servers. They may not fail where the present ones do not, and
 * may not have fewer rights.
 * @returns why they cannot be used; undefined if they can. Never rejects
 */
export async function tryCredentials(url: string, present: string, replicas: number): Promise<string | undefined> {
  const tryOut = async (tried: string): Promise<Trial> =>
    trialOf(await probeRedis(tried, { timeoutMs: TRY_MS, replicas, hasSubjects: true }))
  const [next, now] = await Promise.all([tryOut(url), tryOut(present)])
  const fault = next.faults.find((each) => !now.faults.includes(each))
  if (fault !== undefined) return fault
  return next.isServed ? undefined : (next.faults[0] ?? 'no server replies')
}

function trialOf(results: readonly CheckResult[]): Trial {
  const faults = results.filter(
    ({ is, advice }) => is === 'failed' || advice === PERMISSION_ADVICE || advice === WAIT_ADVICE,
  )
  return {
    isServed: results.some(({ is }) => is !== 'failed'),
    faults: faults.map(({ message }) => message),
  }
}
