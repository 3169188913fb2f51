import { setImmediate as turn } from 'node:timers/promises'
import { test, type Test } from 'tap'
import type { MasterServer } from '../../src/store/links/redis-link.ts'
import { Replicas } from '../../src/store/links/replicas.ts'
import { master, serversOf } from '../support/redis/servers-alone.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { until } from '../support/time/until.ts'

/** The replicas of a master at a server that answers as a test says. */
function replicasOf(t: Test) {
  // The pauses are then as short as they may be.
  t.intercept(Math, 'random', { value: () => 1 })
  const world = { confirmed: 1, names: new Set(['one']), isHolder: true, looks: 0 }
  const fleet = serversOf(t, {
    7000: master({
      ROLE: ['master', 1, [['replica']]],
      INFO: 'role:master\r\nmaster_replid:one',
      WAIT: () => world.confirmed,
    }),
  })
  const log: unknown[] = []
  const note =
    (level: string) =>
    (details: object, message: string): void =>
      void log.push([level, details, message])
  const one: MasterServer = {
    name: 'one',
    options: { socket: { host: '127.0.0.1', port: 7000 } },
    owns: () => true,
  }
  const link = {
    masterNames: () => (world.looks++, world.names),
    masterOf: () => {
      if (!world.isHolder) throw new Error('no master')
      return one
    },
  }
  const replicas = new Replicas(link, { warn: note('warn'), info: note('info') })
  t.teardown(() => replicas.close())
  return { ...fleet, replicas, world, log }
}

await test('one replica has a mark within 200 ms', async (t) => {
  const { replicas, sent, world } = replicasOf(t)
  t.equal(await replicas.have('key'), true)
  t.ok(sent().includes('7000 WAIT 1 200'))
  world.confirmed = 0
  t.equal(await replicas.have('key'), false)
})

await test('an operator is told that no replicas confirm, and that they do again', async (t) => {
  const seconds = new HeldTimers(t, 'setTimeout', 1000)
  const { replicas, world, log } = replicasOf(t)
  world.confirmed = 0
  await t.rejects(
    replicas.write('key', 1, async () => 'reply'),
    { message: '0 of 1 replicas confirmed' },
  )
  const reason = '0 of 1 replicas confirmed'
  const refused = 'calls with an Idempotency-Key are refused: no replicas confirm'
  t.same(log, [['warn', { reason, needed: 1 }, refused]])
  world.confirmed = 1
  seconds.run()
  for (let turns = 0; turns < 10; turns++) await turn()
  t.same(log.slice(1), [['info', {}, 'calls with an Idempotency-Key are accepted again: replicas confirm']])
})

await test('a server to which a key was moved is a master even before the Cluster names it', async (t) => {
  const { replicas, world } = replicasOf(t)
  world.names = new Set()
  t.equal(await replicas.have('key'), true)
})

await test('a server is looked for as long as it is a master, and no longer', async (t) => {
  for (const [names, isHolder, isSought] of [
    [['one'], false, true],
    [['another'], false, false],
  ] as const) {
    const { replicas, world, sent, lose } = replicasOf(t)
    t.equal(await replicas.have('key'), true)
    world.names = new Set(names)
    world.isHolder = isHolder
    sent()
    world.looks = 0
    lose(7000)
    await until(() => world.looks > 0, 'it is looked for')
    for (let turns = 0; turns < 10; turns++) await turn()
    t.equal(sent().includes('7000 connect'), isSought, names[0])
  }
})
