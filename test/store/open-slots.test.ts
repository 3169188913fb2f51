import { ErrorReply } from '@redis/client'
import { test } from 'tap'
import { DATA } from '../../src/store/data-commands.ts'
import { besideKey, ENDED_CHANNEL, LEFT_MS } from '../../src/store/keys.ts'
import { slotOf } from '../../src/store/links/cluster-slots.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { connectedStore } from '../support/redis/connected-store.ts'
import { storeClient } from '../support/redis/store-client.ts'
import { askRedis, testMasters } from '../support/redis/topologies.ts'
import { until } from '../support/time/until.ts'

/** Begins to move a slot as redis-cli does. */
async function beginToMove(slot: number, from: { url: string }, to: { url: string }): Promise<void> {
  const [fromId, toId] = await Promise.all([from, to].map((each) => askRedis(each, ['CLUSTER', 'MYID'])))
  await askRedis(to, ['CLUSTER', 'SETSLOT', String(slot), 'IMPORTING', String(fromId)])
  await askRedis(from, ['CLUSTER', 'SETSLOT', String(slot), 'MIGRATING', String(toId)])
}

await test('a session ends although its slot is being moved, and nobody moves it on', async (t) => {
  const nodes = await testMasters(t, 2)
  const store = await connectedStore(t, nodes.map(({ url }) => url).join(','))
  const news: string[] = []
  const listener = await storeClient(t, { redis: nodes[0] })
  await listener.subscribe(ENDED_CHANNEL, (text) => void news.push(text))
  for (const place of ['old', 'new'] as const) {
    const key = `session at its ${place} place`
    const [from, to] = slotOf(key) < 8192 ? nodes : nodes.toReversed()
    if (from === undefined || to === undefined) throw new Error('there are two masters')
    const end = () => store.bury(key, tombstone)
    const tombstone = {
      key: besideKey(key, 'tombstone'),
      leftKey: besideKey(key, 'left'),
      value: 'logout',
      expiresAt: Date.now() + 60_000,
    }
    await store.create(key, 'v1.sealed', Date.now() + 600_000)
    await beginToMove(slotOf(key), from, to)
    if (place === 'new') await askRedis(from, ['MIGRATE', '127.0.0.1', String(to.port), key, '0', '5000'])
    t.equal(await end(), 'logout v1.sealed')
    t.equal(await store.read(key), undefined)
    t.match(await store.readUntracked(tombstone.key), { value: 'logout', expiresAt: tombstone.expiresAt })
    const { value, expiresAt = 0 } = (await store.readUntracked(tombstone.leftKey)) ?? {}
    t.equal(value, 'logout v1.sealed')
    t.ok(expiresAt <= Date.now() + LEFT_MS)
    await until(() => news.includes(`${key} logout`), 'it is told')
    t.equal(await end(), 'logout v1.sealed', 'its end is found')
  }
})

/** Sends a burial to servers whose replies are given; an error is one. @returns the commands by their first words, and the outcome */
async function buried(...replies: unknown[]) {
  const sent: string[] = []
  const send = async (_key: string, words: readonly string[]): Promise<unknown> => {
    const [name = '', script = ''] = words
    sent.push(name === 'EVAL' ? (/'(DEL|SET)'/.exec(script)?.[1] ?? '') : words.join(' '))
    const reply = replies.shift()
    if (reply instanceof Error) throw reply
    return reply
  }
  const tombstone = { key: 'tombstone', leftKey: 'left', value: 'logout', expiresAt: 1 }
  const outcome = await Promise.resolve(DATA.bury.send({ send } as never, () => 0, 'key', tombstone)).catch(
    (error: unknown) => error,
  )
  return { sent, outcome }
}

await test('an end that is written step by step is that of the session as it was last', async (t) => {
  const tryAgain = new ErrorReply('TRYAGAIN Multiple keys request during rehashing of slot')
  const forbidden = new ErrorReply('NOPERM that is why')
  const steps = ['GET key', 'SET', 'SET', 'DEL']
  const { sent, outcome } = await buried(tryAgain, 'old', 'OK', 'OK', 0, 'new', 'OK', 'OK', 1, forbidden)
  t.equal(outcome, 'logout new')
  t.same(sent, ['DEL', ...steps, ...steps, 'PUBLISH bff:1:ended key logout'])
  const other = await buried(tryAgain, 'old', 'OK', 'OK', 0, null, 'replaced old')
  t.equal(other.outcome, 'replaced old')
  t.same(other.sent, ['DEL', ...steps, 'GET key', 'GET left'])
  t.same(await buried(forbidden), { sent: ['DEL'], outcome: forbidden })
})

await test('a write that is to be confirmed goes to the master to which its slot has moved', async (t) => {
  const nodes = await testMasters(t, 2)
  const store = await connectedStore(t, nodes.map(({ url }) => url).join(','))
  const confirmed = await store.openConfirmed(0)
  t.equal(await confirmed.create('key', 'value', Date.now() + 60_000), true)
  const slot = slotOf('another')
  const to = slot < 8192 ? nodes[1] : nodes[0]
  if (to === undefined) throw new Error('there are two masters')
  const id = String(await askRedis(to, ['CLUSTER', 'MYID']))
  for (const node of [to, ...nodes]) await askRedis(node, ['CLUSTER', 'SETSLOT', String(slot), 'NODE', id])
  t.equal(await confirmed.create('another', 'value', Date.now() + 60_000), true)
  t.equal(await confirmed.replace('another', 'value', 'other', Date.now() + 60_000), true)
})

await test('a value that is to be confirmed is replaced where its slot is being moved, and none is made there, since the move may be broken off', async (t) => {
  const nodes = await testMasters(t, 2)
  const store = await connectedStore(t, nodes.map(({ url }) => url).join(','))
  const confirmed = await store.openConfirmed(0)
  const expiresAt = Date.now() + 60_000
  const key = 'a call'
  const [from, to] = slotOf(key) < 8192 ? nodes : nodes.toReversed()
  if (from === undefined || to === undefined) throw new Error('there are two masters')
  t.equal(await confirmed.create(key, 'claimed', expiresAt), true)
  await beginToMove(slotOf(key), from, to)
  t.equal(await confirmed.create(key, 'claimed by another', expiresAt), false, 'it is there')
  await askRedis(from, ['MIGRATE', '127.0.0.1', String(to.port), key, '0', '5000'])
  t.equal(await confirmed.replace(key, 'claimed', 'unknown', expiresAt), true)
  t.match(await store.read(key), { value: 'unknown' })
  await t.rejects(confirmed.create(key, 'claimed by another', expiresAt), StoreUnavailable)
})

await test('a value that is to be confirmed is replaced on a new master, which has its first slot being moved there', async (t) => {
  const nodes = await testMasters(t, 2)
  const key = 'a call'
  const [from, to] = slotOf(key) < 8192 ? nodes : nodes.toReversed()
  if (from === undefined || to === undefined) throw new Error('there are two masters')
  const range = to === nodes[0] ? ['0', '8191'] : ['8192', '16383']
  for (const node of [to, from]) await askRedis(node, ['CLUSTER', 'DELSLOTSRANGE', ...range])
  const warnings: string[] = []
  const store = await connectedStore(t, from.url.replace('redis:', 'redis+cluster:'), {
    warn: (_details, message) => void warnings.push(message),
  })
  const confirmed = await store.openConfirmed(0)
  const expiresAt = Date.now() + 60_000
  t.equal(await confirmed.create(key, 'claimed', expiresAt), true)
  await beginToMove(slotOf(key), from, to)
  await askRedis(from, ['MIGRATE', '127.0.0.1', String(to.port), key, '0', '5000'])
  t.equal(await confirmed.replace(key, 'claimed', 'unknown', expiresAt), true)
  t.match(await store.read(key), { value: 'unknown' })
  t.same(warnings, [])
})
