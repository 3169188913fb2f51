import { test, type Test } from 'tap'
import { budgetKey } from '../../src/store/keys.ts'
import { connectedStore } from '../support/redis/connected-store.ts'
import type { SharedDocument } from '../../src/store/shared-document.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { askRedis } from '../support/redis/topologies.ts'
import { until } from '../support/time/until.ts'
import { testRedis } from '../support/server/test-server.ts'

/** The document of an instance, and how often it was told of changes. */
async function open(t: Test, url: string): Promise<{ document: SharedDocument; news: { count: number } }> {
  const store = await connectedStore(t, url)
  const news = { count: 0 }
  const document = await store.openRefusals('default', () => void news.count++)
  t.teardown(() => document.close())
  // A subscription that is in place counts as news.
  await until(() => news.count === 1, 'the instance listens')
  return { document, news }
}

await test('instances change a document together: each change is made to the last version, and the others are told', async (t) => {
  const redis = await testRedis(t)
  const [one, two] = [await open(t, redis.url), await open(t, redis.url)]
  const empty = await one.document.read()
  t.match(empty, { version: '', text: '' })
  t.ok(Math.abs(empty.now - Date.now()) < 5000, "the server's clock")
  t.ok(await one.document.write('', 'first text', 60_000))
  await until(() => two.news.count === 2, 'the other is told')
  const { version, text } = await two.document.read()
  t.equal(text, 'first text')
  t.notOk(await two.document.write('', 'lost', 60_000), 'what was read is outdated')
  t.ok(await two.document.write(version, '{"a b":1}', 60_000))
  t.notOk(await one.document.write(version, 'lost', 60_000))
  await until(() => one.news.count === 2, 'the first is told')
  t.equal((await one.document.read()).text, '{"a b":1}')
  t.equal(two.news.count, 2, 'nobody is told of its own changes')
  const leftMs = Number(await askRedis(redis, ['PTTL', budgetKey('refusals', 'default')]))
  t.ok(leftMs > 50_000 && leftMs <= 60_000, 'it expires')
  await askRedis(redis, ['DEL', budgetKey('refusals', 'default')])
  t.match(await one.document.read(), { version: '', text: '' })
})

await test('an instance whose channel was away is told that the document may have changed', async (t) => {
  const redis = await testRedis(t)
  const { news } = await open(t, redis.url)
  t.equal(await askRedis(redis, ['CLIENT', 'KILL', 'TYPE', 'pubsub']), 1)
  await until(() => news.count === 2, 'once the channel is back')
})

await test('version 0.2 publishes hold-backs of all users on the same channel: they have no effect here', async (t) => {
  const redis = await testRedis(t)
  const [one, two] = [await open(t, redis.url), await open(t, redis.url)]
  await askRedis(redis, ['PUBLISH', budgetKey('budget-news', 'default'), 'orders 30000'])
  await one.document.write('', 'text', 60_000)
  await until(() => two.news.count > 1, 'a change that comes after it')
  t.equal(two.news.count, 2, 'is the only news')
})

await test('a document rejects with StoreUnavailable while Redis is down', async (t) => {
  const redis = await testRedis(t)
  const { document } = await open(t, redis.url)
  await redis.close()
  await t.rejects(document.read(), StoreUnavailable)
  await t.rejects(document.write('', 'text', 1000), StoreUnavailable)
})
