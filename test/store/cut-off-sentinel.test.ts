import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type Test } from 'tap'
import { freePort } from '../../sandbox/listening.ts'
import { startRedis, type RedisProcess } from '../../sandbox/redis-process.ts'
import { tryCredentials } from '../../src/store/credentials-trial.ts'
import { probeRedis } from '../../src/store/probe.ts'
import { connectedStore } from '../support/redis/connected-store.ts'
import { askRedis } from '../support/redis/topologies.ts'
import { testRedis } from '../support/server/test-server.ts'
import { until, untilSlow } from '../support/time/until.ts'

const PROBE = { timeoutMs: 3000, hasSubjects: false, replicas: 0 }

/** A Sentinel that hears of no other, and names the server at a port as the master. */
async function loneSentinel(t: Test, masterPort: number): Promise<RedisProcess> {
  const dir = await mkdtemp(join(tmpdir(), 'bff-sentinel-'))
  t.teardown(() => rm(dir, { recursive: true, force: true }))
  const file = join(dir, 'sentinel.conf')
  await writeFile(file, `sentinel monitor bff 127.0.0.1 ${masterPort} 2\n`)
  const sentinel = await startRedis(['--sentinel'], undefined, file)
  t.teardown(() => sentinel.close())
  return sentinel
}

await test('A Sentinel that still names a server that is down, or that is a replica by now, does not keep a store from the master', async (t) => {
  const master = await testRedis(t)
  const replica = await startRedis(['--replicaof', '127.0.0.1', String(master.port)])
  t.teardown(() => replica.close())
  const closed = await freePort()
  const [informed, ...cutOff] = await Promise.all(
    [master.port, closed, replica.port].map((port) => loneSentinel(t, port)),
  )
  const hosts = [...cutOff, informed].map((sentinel) => `127.0.0.1:${sentinel?.port}`)
  const url = `redis+sentinel://${hosts.join(',')}/bff`

  const store = await connectedStore(t, url)
  await untilSlow(() => store.unavailableSince() === undefined, 'the store is there')
  t.equal(await store.create('bff:1:a-key', 'text', Date.now() + 60_000), true)
  await askRedis(master, ['CLIENT', 'KILL', 'TYPE', 'normal'])
  await until(() => store.unavailableSince() !== undefined, 'the connection is lost')
  await untilSlow(() => store.unavailableSince() === undefined, 'the store is there again')

  const results = await probeRedis(url, PROBE)
  t.same(
    results.filter(({ is }) => is === 'failed'),
    [],
  )
  t.match(results[0], { is: 'ok', message: `127.0.0.1:${master.port} is Redis` })
  t.match(results.at(-1), { is: 'warning', message: /^the Sentinels name different masters: / })
  t.equal(await tryCredentials(url, url, 0), undefined)
})
