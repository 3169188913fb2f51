import { test } from 'tap'
import { subscribe } from '../../src/store/links/channel-subscriber.ts'
import type { MasterServer } from '../../src/store/links/redis-link.ts'
import { master, serversOf } from '../support/redis/servers-alone.ts'
import { until } from '../support/time/until.ts'

const at = (port: number): MasterServer => ({
  name: `${port}`,
  options: { socket: { host: '127.0.0.1', port } },
  owns: () => true,
})

await test('a subscription hears its channel, and leaves a server that is no master any more for another one', async (t) => {
  // The pauses are then as short as they may be.
  t.intercept(Math, 'random', { value: () => 1 })
  const { sent, open } = serversOf(t, { 7000: master(), 7001: master() })
  let [any, names] = [at(7000), ['7000', '7001']]
  const link = { anyServer: () => any, masterNames: () => new Set(names) }
  const heard: string[] = []
  let ups = 0
  const subscription = subscribe('news', link, { message: (text) => void heard.push(text), up: () => void ups++ })
  t.teardown(() => subscription.close())
  await until(() => ups === 1)
  t.same(sent(), ['7000 connect', '7000 SUBSCRIBE news'])
  open()[0]?.channels.get('news')?.('text')
  t.same(heard, ['text'])
  await subscription.ask()
  t.same([sent(), subscription.isUp], [['7000 PING'], true], 'it is still a master')
  names = ['7001']
  any = at(7001)
  await subscription.ask()
  t.equal(subscription.isUp, false)
  await until(() => ups === 2)
  t.same(
    open().map(({ port }) => port),
    [7001],
  )
})

await test('a subscription without its channel is none', async (t) => {
  t.intercept(Math, 'random', { value: () => 1 })
  const { servers, sent } = serversOf(t, { 7000: master({ SUBSCRIBE: new Error('NOPERM') }) })
  const link = { anyServer: () => at(7000), masterNames: () => new Set(['7000']) }
  let ups = 0
  const subscription = subscribe('news', link, { message: () => undefined, up: () => void ups++ })
  t.teardown(() => subscription.close())
  await until(() => sent().includes('7000 closed'))
  t.same([ups, subscription.isUp], [0, false])
  servers[7000] = master()
  await until(() => subscription.isUp)
})
