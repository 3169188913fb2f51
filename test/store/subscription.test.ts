import { test } from 'tap'
import { ENDED_CHANNEL } from '../../src/store/keys.ts'
import { subscribe } from '../../src/store/links/channel-subscriber.ts'
import { askRedis, testMasters } from '../support/redis/topologies.ts'
import { connectedStore } from '../support/redis/connected-store.ts'
import { testRedis } from '../support/server/test-server.ts'
import { until } from '../support/time/until.ts'

await test('a subscription leaves a server that is no master any more, although that one still runs', async (t) => {
  const [first, second] = [await testRedis(t), await testRedis(t)]
  const serverOf = ({ url }: typeof first) => ({ name: url, options: { url }, owns: () => true })
  let master = first
  const link = { anyServer: () => serverOf(master), masterNames: () => new Set([master.url]) }
  const [heard, ups]: [string[], string[]] = [[], []]
  const events = { message: (text: string) => void heard.push(text), up: () => void ups.push(master.url) }
  const subscription = subscribe('news', link, events)
  t.teardown(() => subscription.close())
  await until(() => subscription.isUp, 'it is subscribed')
  await askRedis(first, ['PUBLISH', 'news', 'one'])
  await until(() => heard.length === 1, 'it hears')
  master = second
  await until(() => ups.length === 2, 'it has moved on')
  await askRedis(second, ['PUBLISH', 'news', 'two'])
  await until(() => heard.length === 2, 'it hears again')
  t.same(
    [heard, ups],
    [
      ['one', 'two'],
      [first.url, second.url],
    ],
  )
})

await test('on a Cluster any session may have ended while the channel that reports the ends was away', async (t) => {
  const nodes = await testMasters(t, 2)
  const store = await connectedStore(t, `redis+cluster://127.0.0.1:${nodes[0]?.port}`)
  let changed: (string | undefined)[] = []
  store.onChange((key) => changed.push(key))
  t.notOk(store.reportsBurials)
  store.watchBurials()
  await until(() => store.reportsBurials, 'the channel is there')
  t.same(changed, [undefined], 'before that, too')
  await askRedis(nodes[1] ?? { url: '' }, ['PUBLISH', ENDED_CHANNEL, 'a-session logout'])
  await until(() => changed.length === 2, 'an end is reported')
  t.equal(changed[1], 'a-session')
  changed = []
  const killed = await Promise.all(nodes.map((node) => askRedis(node, ['CLIENT', 'KILL', 'TYPE', 'pubsub'])))
  t.equal(killed.filter((count) => count === 1).length, 1, 'one server has the channel')
  await until(() => !store.reportsBurials, 'nothing is reported now')
  await until(() => changed.length > 0, 'it is back')
  t.same([changed[0], store.reportsBurials], [undefined, true])
})
