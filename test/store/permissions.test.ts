import { test } from 'tap'
import { sessionKey } from '../../src/store/keys.ts'
import { probeRedis } from '../../src/store/probe.ts'
import { connectedStore } from '../support/redis/connected-store.ts'
import { DOCUMENTED_COMMANDS, deniedOn, withDocumentedRights } from '../support/redis/rights.ts'
import { askRedis } from '../support/redis/topologies.ts'
import { until } from '../support/time/until.ts'
import { testRedis } from '../support/server/test-server.ts'
import { sharedStoreContract } from './store-contract.ts'
import { exactly } from '../support/exactly.ts'

/** Commands of this test, of a replica, and those that need no right. */
const OTHERS: ReadonlySet<string> = new Set(['acl|log', 'config|resetstat', 'replconf', 'psync', 'hello', 'auth'])

await test('a user of Redis with the rights that the documentation names may do everything, and needs each of them', async (t) => {
  const master = await testRedis(t, ['--repl-diskless-sync-delay', '0'])
  await testRedis(t, ['--replicaof', '127.0.0.1', String(master.port)])
  const url = `${await withDocumentedRights({ url: master.url, nodes: [master] })}/1`
  await askRedis(master, ['CONFIG', 'RESETSTAT'])

  const store = await connectedStore(t, url)
  await until(async () => (await store.isReplicated(sessionKey('any'))) === true)
  await sharedStoreContract(t, () => connectedStore(t, url), true)
  const writes = await store.openConfirmed(1)
  t.ok(await writes.create(sessionKey('confirmed'), 'v', Date.now() + 1000))
  let news = 0
  const document = await store.openRefusals('default', () => void news++)
  t.teardown(() => document.close())
  await until(() => news > 0, 'the subscription is in place')
  t.ok(await document.write('', 'text', 1000))
  const facts = { sessions: Number, memory: { usedBytes: Number } }
  t.match(await store.facts(), facts)
  // More keys than are counted one by one.
  const fill = "for at = 1, 600 do redis.call('SET', 'bff:1:other:' .. at, '') end"
  await askRedis({ url: `${master.url}/1` }, ['EVAL', fill, '0'])
  t.match(await (await connectedStore(t, url)).facts(), facts)
  t.match(
    await probeRedis(url, { timeoutMs: 5000, replicas: 1, hasSubjects: true }),
    exactly({ is: 'ok' }, { message: /append-only/ }),
  )

  t.same(await deniedOn([master]), [], 'nothing was denied')
  const stats = String(await askRedis(master, ['INFO', 'commandstats']))
  const used = [...stats.matchAll(/^cmdstat_([^:]+):/gm)].map(([, name = '']) => name)
  t.same(used.filter((name) => !OTHERS.has(name)).toSorted(), DOCUMENTED_COMMANDS.toSorted())
})

await test('a user of Redis without the right to GETRANGE reads controls all the same', async (t) => {
  const redis = await testRedis(t)
  const url = await withDocumentedRights({ url: redis.url, nodes: [redis] })
  await askRedis(redis, ['ACL', 'SETUSER', 'bff', '-getrange'])
  const store = await connectedStore(t, url)
  await store.create(sessionKey('any'), 'mark text', Date.now() + 60_000)
  t.match(await store.readMarked(sessionKey('any'), 'mark'), { isKnown: true, value: undefined })
  t.match(await store.readMarked(sessionKey('any'), 'other'), { isKnown: false, value: 'mark text' })
})
