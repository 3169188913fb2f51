import { test } from 'tap'
import { MasterLink } from '../../src/store/links/master-link.ts'
import type { LinkEvents, MasterServer } from '../../src/store/links/redis-link.ts'
import { testRedis } from '../support/server/test-server.ts'
import { askRedis } from '../support/redis/topologies.ts'
import { until } from '../support/time/until.ts'

const masterAt = ({ port }: { port: number }): MasterServer => ({
  name: `127.0.0.1:${port}`,
  options: { socket: { host: '127.0.0.1', port } },
  owns: () => true,
})

await test('an answer of a Sentinel that came too late does not drop the master that was found meanwhile', async (t) => {
  const [former, next] = [await testRedis(t), await testRedis(t)]
  const stale = Promise.withResolvers<void>()
  let master = masterAt(former)
  let asked = 0
  const link = new MasterLink(async () => {
    const found = master
    if (++asked === 2) await stale.promise
    return found
  })
  const lost: string[] = []
  let ups = 0
  const events: LinkEvents = {
    opened: async () => undefined,
    ask: async (_master, connection) => void (await connection.ping()),
    unreached: () => undefined,
    up: () => void ups++,
    lost: (reason) => void lost.push(reason),
    changed: () => undefined,
  }
  await link.open(events)
  t.teardown(() => link.close())
  await until(() => asked === 2, 'the link checks the master')
  master = masterAt(next)
  await askRedis(former, ['CLIENT', 'KILL', 'TYPE', 'normal'])
  await until(() => ups === 2, 'the next master is connected')
  stale.resolve()
  await until(() => asked === 4, 'the link checks again')
  t.same([lost.length, ups], [1, 2])
})
