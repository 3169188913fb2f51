import { test } from 'tap'
import { subscribe } from '../../src/store/links/channel-subscriber.ts'
import { askRedis } from '../support/redis/topologies.ts'
import { until } from '../support/time/until.ts'
import { testRedis } from '../support/server/test-server.ts'

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
