import { untilSlow } from '../support/time/until.ts'
import type { DurableRedis } from '../support/redis/durable-redis.ts'
import type { Fleet } from './fleet.ts'

/** The replicas of the only master behind Sentinels, and what may happen to all of them. */
export interface Replicated {
  readonly master: DurableRedis
  readonly freeze: () => void
  readonly thaw: () => void
  /**
   * The master dies, and one of the frozen replicas takes over without what had not come through to it: they are killed, too, since
   * what waits in their sockets would come through when they go on. Resolves once it has taken over.
   */
  readonly takeOver: () => Promise<void>
  /** The former master comes back as a replica. Resolves once all have what their master has. */
  readonly comeBack: () => Promise<void>
}

/** The servers of a fleet behind Sentinels. */
export async function replicatedIn({ redis }: Pick<Fleet, 'redis'>): Promise<Replicated> {
  await untilSlow(() => redis.isWhole(), 'what an earlier fault has broken is whole again')
  const [master] = await redis.masters()
  if (master === undefined) throw new Error('there is no master')
  const replicas = redis.nodes.filter((node) => node !== master)
  return {
    master,
    freeze: () => replicas.forEach((replica) => replica.freeze()),
    thaw: () => replicas.forEach((replica) => replica.thaw()),
    async takeOver() {
      await Promise.all([master, ...replicas].map((node) => node.kill()))
      await Promise.all(replicas.map((replica) => replica.restart()))
      await untilSlow(async () => (await redis.masters()).length === 1, 'a replica takes over')
    },
    async comeBack() {
      await master.restart()
      await untilSlow(() => redis.isWhole(), 'the former master follows')
    },
  }
}
