import { setTimeout as delay } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { Changeable } from '../../src/config/changing.ts'
import { ClusterLink } from '../../src/store/links/cluster-link.ts'
import { ClusterNodes } from '../../src/store/links/cluster-nodes.ts'
import type { Connection } from '../../src/store/links/connection.ts'
import { LiveCredentials } from '../../src/store/links/live-credentials.ts'
import { slotOf } from '../../src/store/links/cluster-slots.ts'
import { tryCredentials } from '../../src/store/credentials-trial.ts'
import { probeRedis } from '../../src/store/probe.ts'
import { RedisStore } from '../../src/store/redis-store.ts'
import { connectedStore, QUIET } from '../support/redis/connected-store.ts'
import { CommandProxy } from '../support/redis/command-proxy.ts'
import { askRedis, testMasters } from '../support/redis/topologies.ts'
import { until } from '../support/time/until.ts'

const KEYS = Array.from({ length: 40 }, (_, index) => `bff:1:key ${index}`)
const expiresAt = Date.now() + 600_000

type Node = Awaited<ReturnType<typeof testMasters>>[number]

async function assertServesAll(t: Test, store: RedisStore): Promise<void> {
  const found = await Promise.all(KEYS.map((key) => store.read(key)))
  t.same(
    found.map((each) => each?.value),
    KEYS,
  )
}

async function filled(t: Test, url: string): Promise<RedisStore> {
  const store = await connectedStore(t, url)
  for (const key of KEYS) t.ok(await store.create(key, key, expiresAt))
  return store
}

const setUser = (node: Node, name: string): Promise<unknown> =>
  askRedis(node, ['ACL', 'SETUSER', name, 'on', '>password', '~*', '&*', '+@all'])

const clientsOf = async (node: Node): Promise<string> => String(await askRedis(node, ['CLIENT', 'LIST']))

const idOf = async (node: Node): Promise<string> => String(await askRedis(node, ['CLUSTER', 'MYID']))

/** Moves a slot as redis-cli does. */
async function move(slot: number, from: Node, to: Node): Promise<void> {
  await begin(slot, from, to)
  const keys = (await askRedis(from, ['CLUSTER', 'GETKEYSINSLOT', String(slot), '100'])) as string[]
  for (const key of keys) await askRedis(from, ['MIGRATE', '127.0.0.1', String(to.port), key, '0', '1000'])
  for (const each of [to, from]) await askRedis(each, ['CLUSTER', 'SETSLOT', String(slot), 'NODE', await idOf(to)])
}

async function begin(slot: number, from: Node, to: Node): Promise<void> {
  await askRedis(to, ['CLUSTER', 'SETSLOT', String(slot), 'IMPORTING', await idOf(from)])
  await askRedis(from, ['CLUSTER', 'SETSLOT', String(slot), 'MIGRATING', await idOf(to)])
}

await test('One address of a Cluster is enough, and nodes that leave their hosts out have that of the node that was asked', async (t) => {
  const host = '127.0.0.2'
  const [one, other] = await testMasters(t, 2, ['--cluster-preferred-endpoint-type', 'unknown-endpoint'], host)
  if (one === undefined || other === undefined) throw new Error('no masters')
  const store = await filled(t, `redis+cluster://${host}:${one.port}`)
  for (const node of [one, other]) {
    t.match(await clientsOf(node), new RegExp(`laddr=${host}:`), 'the store is connected to this node')
  }
  const [key = ''] = KEYS
  const slot = slotOf(key)
  const isFirst = slot < 8192
  // A redirection leaves the host out, too.
  await move(slot, isFirst ? one : other, isFirst ? other : one)
  await assertServesAll(t, store)
})

await test('A command is sent on to the master that is about to have its key, or has it', async (t) => {
  const [one, other] = await testMasters(t, 2)
  if (one === undefined || other === undefined) throw new Error('no masters')
  const store = await filled(t, `redis+cluster://127.0.0.1:${other.port}`)
  const key = KEYS.find((each) => slotOf(each) < 8192) ?? ''
  const fresh = `{${key}}:fresh`
  await begin(slotOf(key), one, other)
  t.ok(await store.create(fresh, 'fresh', expiresAt), 'a new key is made at the master that the slot is moved to')
  t.equal((await store.read(fresh))?.value, 'fresh')
  t.equal((await store.read(key))?.value, key, 'the old one is still where it was')
  await move(slotOf(key), one, other)
  t.equal((await store.read(key))?.value, key)
  t.equal(
    await store.bury(key, { key: `{${key}}:tombstone`, leftKey: `{${key}}:left`, value: 'logout', expiresAt }),
    `logout ${key}`,
  )
})

await test('A node that owns no slot is asked for a sign of life, and not whether it serves', async (t) => {
  const [owner, target] = await testMasters(t, 2)
  if (owner === undefined || target === undefined) throw new Error('no masters')
  for (const node of [target, owner]) await askRedis(node, ['CLUSTER', 'DELSLOTSRANGE', '8192', '16383'])
  const credentials = new LiveCredentials(new Changeable(owner.url), () => undefined)
  const link = new ClusterLink([{ host: '127.0.0.1', port: owner.port }], credentials)
  t.teardown(() => link.close())
  const asked = new Set<string>()
  await link.open({
    opened: async () => undefined,
    ask: async ({ name }, connection) => {
      asked.add(name)
      await connection.ping()
    },
    unreached: () => undefined,
    up: () => undefined,
    lost: () => undefined,
    changed: () => undefined,
  })
  const key = KEYS.find((each) => slotOf(each) < 8192) ?? ''
  await begin(slotOf(key), owner, target)
  t.equal(await link.commands().send(key, ['SET', key, 'moved']), 'OK')
  const isAlive = async (): Promise<boolean> =>
    String(await askRedis(target, ['INFO', 'commandstats'])).includes('cmdstat_ping')
  await until(isAlive, 'the target of the move is asked for a sign of life')
  t.same([...asked], [`127.0.0.1:${owner.port}`])
})

await test('A master that was taken out of the Cluster, and goes on running, is asked for nothing', async (t) => {
  const [kept, removed] = await testMasters(t, 2)
  if (kept === undefined || removed === undefined) throw new Error('no masters')
  const url = `redis://127.0.0.1:${removed.port},redis://127.0.0.1:${kept.port}`
  const store = await filled(t, url)
  const seeds = [{ host: '127.0.0.1', port: kept.port }]
  const credentials = new LiveCredentials(new Changeable(url), () => undefined)
  const events = { ask: (_node: unknown, connection: Connection) => connection.ping(), unreached: () => undefined }
  const nodes = new ClusterNodes(seeds, credentials, events)
  t.teardown(() => nodes.close())
  t.ok(await nodes.read())
  for (const key of KEYS.filter((each) => slotOf(each) >= 8192)) await move(slotOf(key), removed, kept)
  await askRedis(removed, ['FLUSHALL'])
  await askRedis(kept, ['CLUSTER', 'FORGET', await idOf(removed)])
  await askRedis(removed, ['CLUSTER', 'RESET', 'HARD'])
  t.same(await askRedis(removed, ['CLUSTER', 'SLOTS']), [])
  t.ok(await nodes.reread(nodes.masters.find(({ port }) => port === kept.port)))
  t.same(
    nodes.masters.map(({ port }) => port),
    [kept.port],
    'the removed one was asked first, and not believed',
  )
  await assertServesAll(t, store)
  await assertServesAll(t, await connectedStore(t, url))
  await until(async () => !(await clientsOf(removed)).includes('cmd=ping'), 'the stores let go of it')
})

await test('A Cluster whose connections are reset once serves on, and nobody hears of it', async (t) => {
  const nodes = await testMasters(t, 2)
  const said: string[] = []
  const note = (details: object, message: string): void => void said.push(`${message} ${JSON.stringify(details)}`)
  const store = await connectedStore(t, `redis+cluster://127.0.0.1:${nodes[0]?.port}`, { warn: note, error: note })
  for (const node of nodes) await askRedis(node, ['CLIENT', 'KILL', 'TYPE', 'normal'])
  for (const until = performance.now() + 2500; performance.now() < until; await delay(20)) {
    if (store.condition().share < 1 || store.unavailableSince() !== undefined) said.push('unavailable')
  }
  t.same(said, [])
})

await test('A master of a Cluster that was away serves again as soon as its connection is up', async (t) => {
  const nodes = await testMasters(t, 2)
  const [kept, lost] = nodes
  if (kept === undefined || lost === undefined) throw new Error('no masters')
  const proxy = await CommandProxy.start(t, lost)
  await askRedis(lost, ['CONFIG', 'SET', 'cluster-announce-port', proxy.url.split(':').at(-1) ?? ''])
  const announced = async (): Promise<boolean> =>
    JSON.stringify(await askRedis(kept, ['CLUSTER', 'SLOTS'])).includes(proxy.url.split(':').at(-1) ?? '')
  await until(announced, 'the proxy is announced')
  const store = await connectedStore(t, `redis+cluster://127.0.0.1:${kept.port}`)
  t.equal(store.condition().share, 1)
  proxy.isDown = true
  await until(() => store.condition().share < 1, 'a vain try to connect counts')
  t.equal(store.unavailableSince(), undefined)
  proxy.isDown = false
  const isConnected = async (): Promise<boolean> => /user=default .*resp=3/.test(await clientsOf(lost))
  await until(isConnected, 'the store is connected again')
  const connectedAt = performance.now()
  await until(() => store.condition().share === 1, 'it serves again')
  t.ok(performance.now() - connectedAt < 500, 'before the next question would come by itself')
})

await test('REDIS_URL that names one of several masters of a Cluster as if it were alone is refused, and named', async (t) => {
  const [one] = await testMasters(t, 2)
  if (one === undefined) throw new Error('no master')
  const reasons: unknown[] = []
  const log = { ...QUIET, warn: ({ reason }: { reason?: string }) => void reasons.push(reason) }
  const store = RedisStore.connect(new Changeable(one.url), log)
  t.teardown(() => store.close())
  await until(() => reasons.length > 0, 'the reason is logged')
  t.match(reasons[0], /one of 2 masters of a Cluster.*redis\+cluster:\/\//)
  t.not(store.unavailableSince(), undefined)
  const [result] = await probeRedis(one.url, { timeoutMs: 3000, replicas: 0, hasSubjects: false })
  t.match(result, { is: 'failed', message: /is one of 2 masters of a Cluster/, advice: /redis\+cluster:\/\// })
  const found = await probeRedis(one.url.replace('redis:', 'redis+cluster:'), {
    timeoutMs: 3000,
    replicas: 0,
    hasSubjects: false,
  })
  t.equal(found.filter(({ is }) => is === 'ok').length, 2, 'the check finds the other master')
})

await test('REDIS_URL may name the only master of a Cluster as if it were alone', async (t) => {
  const [only] = await testMasters(t, 1)
  if (only === undefined) throw new Error('no master')
  await assertServesAll(t, await filled(t, only.url))
  t.match(await probeRedis(only.url, { timeoutMs: 3000, replicas: 0, hasSubjects: false }), [
    { is: 'ok' },
    { message: /append-only/ },
  ])
})

await test('New credentials are tried on every master of a Cluster that answers, and one that does not answer goes on with the old ones', async (t) => {
  const [one, other] = await testMasters(t, 2)
  if (one === undefined || other === undefined) throw new Error('no masters')
  for (const node of [one, other]) await setUser(node, 'old')
  await setUser(one, 'new')
  const as = (user: string): string => `redis+cluster://${user}:password@127.0.0.1:${one.port}`
  t.equal(await tryCredentials(as('new'), as('old'), 0), `127.0.0.1:${other.port} cannot be used (WRONGPASS)`)
  const url = new Changeable(as('old'))
  const store = await connectedStore(t, url)
  for (const key of KEYS) t.ok(await store.create(key, key, expiresAt))

  other.process.kill('SIGSTOP')
  t.equal(await tryCredentials(as('new'), as('old'), 0), undefined)
  url.change(as('new'))
  other.process.kill('SIGCONT')
  await assertServesAll(t, store)
  await askRedis(other, ['CLIENT', 'KILL', 'TYPE', 'normal'])
  const isServed = async (key: string): Promise<boolean> =>
    (await store.read(key).catch(() => undefined))?.value === key
  await until(async () => (await Promise.all(KEYS.map(isServed))).every(Boolean), 'the store is connected again')
  await until(
    async () => / user=new .*resp=3/.test(await clientsOf(one)),
    'the new ones are in use where they are known',
  )
  t.match(await clientsOf(other), / user=old .*resp=3/)
})
