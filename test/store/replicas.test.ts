import { setTimeout as delay } from 'node:timers/promises'
import { test, type Test } from 'tap'
import type { RedisProcess } from '../../sandbox/redis-process.ts'
import { Replicas } from '../../src/store/links/replicas.ts'
import { QUIET } from '../support/redis/connected-store.ts'
import { askRedis } from '../support/redis/topologies.ts'
import { until } from '../support/time/until.ts'
import { testRedis } from '../support/server/test-server.ts'

const infoOf = async (redis: RedisProcess, section: string): Promise<string> =>
  String(await askRedis(redis, ['INFO', section]))

/** A master with a replica that is online, and what asks it. @param names the masters that a Cluster names */
async function withReplica(t: Test, names: ReadonlySet<string> = new Set(['one'])) {
  const master = await testRedis(t, ['--repl-diskless-sync-delay', '0'])
  const replica = await testRedis(t, ['--replicaof', '127.0.0.1', String(master.port)])
  await until(async () => (await infoOf(master, 'replication')).includes('state=online'))
  const server = { name: 'one', options: { socket: { host: '127.0.0.1', port: master.port } }, owns: () => true }
  const replicas = new Replicas({ masterOf: () => server, masterNames: () => names }, QUIET)
  t.teardown(() => replicas.close())
  // A new replica confirms nothing for up to a second.
  const confirms = (): Promise<void> => until(async () => (await replicas.have('any')) === true)
  return { master, replica, replicas, confirms }
}

await test('a replica that is away is missed, although the connection to the master was opened again meanwhile', async (t) => {
  const { master, replica, replicas, confirms } = await withReplica(t)
  await confirms()
  replica.process.kill('SIGKILL')
  await until(async () => (await infoOf(master, 'replication')).includes('connected_slaves:0'))
  t.equal(await replicas.have('key'), false)
  await askRedis(master, ['CLIENT', 'KILL', 'TYPE', 'normal'])
  // The reply of the new connection: while there is none, the answer is false, too.
  const rolesOf = async (): Promise<number> =>
    Number(/cmdstat_role:calls=(\d+)/.exec(await infoOf(master, 'commandstats'))?.[1])
  const before = await rolesOf()
  await until(async () => {
    t.equal(await replicas.have('key'), false)
    return (await rolesOf()) > before
  })
})

await test('whoever asks at once shares a check, but none that began before its own write', async (t) => {
  const { master, replicas, confirms } = await withReplica(t)
  await confirms()
  await askRedis(master, ['CONFIG', 'RESETSTAT'])
  const asked = Array.from({ length: 500 }, (_, index) => replicas.have(`key ${index}`))
  t.ok((await Promise.all(asked)).every((has) => has === true))
  const stats = await infoOf(master, 'commandstats')
  for (const name of ['role', 'eval', 'wait']) t.match(stats, new RegExp(`cmdstat_${name}:calls=2,`))
})

await test('who asks while a check runs for which others had waited gets the next one', async (t) => {
  const { master, replicas, confirms } = await withReplica(t)
  await confirms()
  await askRedis(master, ['CONFIG', 'RESETSTAT'])
  const [first, second] = [replicas.have('first'), replicas.have('second')]
  await first
  const third = replicas.have('third')
  t.same(await Promise.all([second, third]), [true, true])
  t.match(await infoOf(master, 'commandstats'), /cmdstat_role:calls=3,/)
})

await test('a master to which a key was moved is asked, although the Cluster did not name it yet', async (t) => {
  const { replicas, confirms } = await withReplica(t, new Set())
  await confirms()
  const expiration = { type: 'PX', value: 60_000 } as const
  t.equal(await replicas.write('key', 1, (connection) => connection.set('key', 'value', { expiration })), 'OK')
})

await test('after the close no connection is opened', async (t) => {
  const { master, replicas, confirms } = await withReplica(t)
  await confirms()
  const opened = async (): Promise<number> =>
    Number(/total_connections_received:(\d+)/.exec(await infoOf(master, 'stats'))?.[1])
  replicas.close()
  const before = await opened()
  t.equal(await replicas.have('key'), false)
  await t.rejects(replicas.write('key', 1, (connection) => connection.ping()))
  await delay(200)
  // The one that asks.
  t.equal((await opened()) - before, 1)
})
