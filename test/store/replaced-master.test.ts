import { once } from 'node:events'
import { connect, createServer, type AddressInfo } from 'node:net'
import { test } from 'tap'
import { connectedStore } from '../support/redis/connected-store.ts'
import { askRedis, replicationOf } from '../support/redis/topologies.ts'
import { testRedis } from '../support/server/test-server.ts'
import { until } from '../support/time/until.ts'

await test('Where one address leads to another master after a failover, its replicas are asked, although the former one stays connected', async (t) => {
  const one = await testRedis(t, ['--repl-diskless-sync-delay', '0'])
  const other = await testRedis(t, ['--replicaof', '127.0.0.1', String(one.port), '--repl-diskless-sync-delay', '0'])
  let { port } = one
  // As a balancer does it, or a name: what is connected stays where it is.
  const address = createServer((socket) => {
    const redis = connect(port, '127.0.0.1')
    for (const end of [socket, redis])
      end.on('error', () => undefined).on('close', () => [socket, redis].forEach((each) => each.destroy()))
    socket.pipe(redis).pipe(socket)
  })
  await once(address.listen(0, '127.0.0.1'), 'listening')
  t.teardown(() => address.close())
  const store = await connectedStore(t, `redis://127.0.0.1:${(address.address() as AddressInfo).port}`)
  await until(async () => (await store.isReplicated('key')) === true, 'the replica confirms')

  port = other.port
  await askRedis(other, ['REPLICAOF', 'NO', 'ONE'])
  await askRedis(one, ['REPLICAOF', '127.0.0.1', String(other.port)])
  await until(
    async () => (await replicationOf(other)).includes('state=online'),
    'the former master follows the other one',
  )
  await until(() => store.create('key', 'value', Date.now() + 60_000).catch(() => false), 'the store is there')
  await until(async () => (await store.isReplicated('key')) === true, 'the former master confirms')
})
