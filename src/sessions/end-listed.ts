import type { Requester } from '../http/requester.ts'
import { eachOf } from './each-of.ts'
import type { CausedEnd } from './endings.ts'
import type { SessionRepository } from './repository.ts'
import type { ListedSession, SubjectIndex } from './subject-index.ts'

/** The reason why sessions end, and the request that ends them. */
export interface Cause {
  readonly reason: CausedEnd
  readonly requester: Requester
}

/**
 * Ends sessions of which the index knows already that they end.
 * @param subject whose they are, unless their entries say it
 * @returns how many were live
 * @throws StoreUnavailable when some may be left
 */
export async function endListed(
  repository: SessionRepository,
  index: SubjectIndex,
  sessions: readonly ListedSession[],
  { reason, requester, subject }: Cause & { readonly subject?: string | undefined },
): Promise<number> {
  let ended = 0
  await eachOf(sessions, async ({ key, subject: own = subject }) => {
    const subjectTag = own === undefined ? undefined : repository.subjectTag(own)
    if (await repository.end(key, reason, { requester, subjectTag })) ended++
  })
  // Removed last: if this process dies before, the next attempt finds the sessions that are left.
  await index.remove(sessions)
  return ended
}

/**
 * Ends the sessions of a name after the index has noted that they end. The note waits for a replica, as the ends of the
 * sessions do: there may be none of them, or none on this server of a Cluster.
 * @returns how many were live
 * @throws StoreUnavailable when some may be left
 */
export async function endNoted(
  repository: SessionRepository,
  index: SubjectIndex,
  name: string,
  sessions: readonly ListedSession[],
  by: Cause & { readonly subject?: string },
): Promise<number> {
  const noted = index.keysOf(name).map((key) => repository.replicate(key))
  const [ended] = await Promise.all([endListed(repository, index, sessions, by), ...noted])
  return ended
}
