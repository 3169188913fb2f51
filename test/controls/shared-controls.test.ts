import { test, type Test } from 'tap'
import { freePort } from '../../sandbox/listening.ts'
import { startRedis } from '../../sandbox/redis-process.ts'
import { control, pause, shown } from '../support/controls/controls-world.ts'
import { SECRETS, testRedis, testServer, type TestServer } from '../support/server/test-server.ts'
import { IDENTITY } from '../support/login/identity.ts'
import { ALONE } from '../support/server/settings.ts'
import { askRedis } from '../support/redis/topologies.ts'
import { until } from '../support/time/until.ts'
import { storeClient } from '../support/redis/store-client.ts'
import { sideBySide } from '../support/time/side-by-side.ts'

const KEY = 'bff:1:controls'
const SOON_MS = 5000

/** Redis on a port that stays, so that it can go and come back empty. */
async function restartable(t: Test) {
  const port = await freePort()
  let redis = await startRedis([], port)
  t.teardown(() => redis.close())
  return {
    url: `redis://127.0.0.1:${port}`,
    stop: () => redis.close(),
    start: async () => void (redis = await startRedis([], port)),
  }
}

const instances = (t: Test, url: string, count: number, settings: Record<string, string> = {}) =>
  Promise.all(
    Array.from({ length: count }, async () =>
      testServer(t, { ...ALONE, ...IDENTITY, SESSION_SECRETS: SECRETS, REDIS_URL: url, ...settings }),
    ),
  )

type Told = Awaited<ReturnType<typeof control>>
const versionIn = ({ json }: Told): number => Number(json['version'])

/** Resolves once a server has what another one was told. */
const learns = (server: { opsUrl: string }, told: Told): Promise<void> =>
  until(async () => (await shown(server)).version === versionIn(told), `version ${versionIn(told)}`)

await test('controls survive a restart of all instances, and are sealed', async (t) => {
  const redis = await testRedis(t)
  const [first] = await instances(t, redis.url, 1)
  if (first === undefined) throw new Error('no server')
  const paused = versionIn(await pause(first, { subject: 'CR-of-a-user', message: 'a message' }))
  const version = versionIn(await control(first, 'PUT', '/notice', { message: 'a notice' }))
  await first.close()
  const [second] = await instances(t, redis.url, 1)
  if (second === undefined) throw new Error('no server')
  t.match(await shown(second), {
    version,
    orders: null,
    subjects: [{ subject: 'CR-of-a-user', message: 'a message', closing: true, version: paused }],
    notice: { message: 'a notice', version },
    instances: [{ version }],
  })
  const client = await storeClient(t, { redis })
  t.notMatch(await client.get(KEY), /CR-of-a-user|a message|a notice/)
})

await test('GET /controls names every instance and the version that it obeys; one that is gone disappears', async (t) => {
  const redis = await testRedis(t)
  const [first, second, third] = await instances(t, redis.url, 3)
  if (first === undefined || second === undefined || third === undefined) throw new Error('no server')
  const paused = versionIn(await pause(first))
  await until(async () => {
    const { instances: all } = await shown(first)
    return all.length === 3 && all.every(({ version }) => version === paused)
  })
  const { instances: all, instance } = await shown(second)
  t.equal(new Set(all.map((each) => each.instance)).size, 3)
  t.ok(all.some((each) => each.instance === instance))
  for (const { seen_at: seenAt } of all) t.ok(Math.abs(seenAt - Date.now() / 1000) < 30)
  await third.close()
  t.equal((await shown(first)).instances.length, 2)
})

await test('while Redis is away a PUT pauses that instance and says so with 503; when it is back, empty, all learn of it', async (t) => {
  const redis = await restartable(t)
  const [first, second] = await instances(t, redis.url, 2)
  if (first === undefined || second === undefined) throw new Error('no server')
  const before = await control(first, 'PUT', '/notice', { message: 'before' })
  await learns(second, before)
  await redis.stop()
  const answer = await pause(first, { message: 'away' })
  t.match(answer, { status: 503, json: { version: Number, error: /only this instance/ } })
  t.equal(answer.headers.get('retry-after'), '1')
  t.match(
    first.log.find(({ audit, control: what }) => audit === 'controls_changed' && what === 'orders'),
    { outcome: 'here_only' },
  )
  const { status, json } = await control(first, 'GET', '')
  t.match(
    { status, json },
    { status: 503, json: { version: versionIn(answer), orders: { message: 'away' }, notice: { message: 'before' } } },
  )
  const known = { version: versionIn(before), orders: null, notice: { message: 'before' } }
  t.match((await control(second, 'GET', '')).json, known)
  await redis.start()
  await learns(second, answer)
  t.match(
    await shown(second),
    { orders: { message: 'away' }, notice: { message: 'before' } },
    'nothing is lost with Redis',
  )
})

await test('two instances that were cut off from Redis keep what each was told, and the higher version of the same control', async (t) => {
  const redis = await restartable(t)
  const [first, second] = await instances(t, redis.url, 2)
  if (first === undefined || second === undefined) throw new Error('no server')
  await learns(second, await pause(first, { message: 'old' }))
  await redis.stop()
  await pause(first, { subject: 'CR1' })
  await control(first, 'DELETE', '/orders')
  await control(second, 'PUT', '/notice', { message: 'from the second' })
  await redis.start()
  const expected = { orders: null, subjects: [{ subject: 'CR1' }], notice: { message: 'from the second' } }
  for (const server of [first, second]) {
    await until(async () => (await shown(server)).notice !== null && (await shown(server)).subjects.length === 1)
    t.match(await shown(server), expected)
  }
  await until(async () => (await shown(first)).version === (await shown(second)).version, 'both have the same')
})

await test('an instance writes the controls back to a store that has forgotten them, and never an older version over a newer', async (t) => {
  const redis = await testRedis(t)
  const [first, second] = await instances(t, redis.url, 2)
  if (first === undefined || second === undefined) throw new Error('no server')
  const client = await storeClient(t, { redis })
  const paused = await pause(first, { message: 'one' })
  await learns(second, paused)
  const old = (await client.get(KEY)) ?? ''
  await client.flushAll()
  await until(async () => (await client.exists(KEY)) === 1)
  // Sooner than the next regular report of an instance.
  await until(async () => (await shown(second)).instances.length === 2, 'both report again', SOON_MS)
  t.match(await shown(second), { version: versionIn(paused), orders: { message: 'one' } })
  const lifted = await control(first, 'DELETE', '/orders')
  await learns(second, lifted)
  await client.set(KEY, old)
  await until(async () => (await client.get(KEY)) !== old, 'the newer version is written back')
  for (const server of [first, second]) t.match(await shown(server), { version: versionIn(lifted), orders: null })
})

await test('a new first secret seals the controls anew, so that the old one can go', async (t) => {
  const redis = await testRedis(t)
  const fresh = 'another-secret-of-thirty-two-bytes-or-more'
  const client = await storeClient(t, { redis })
  const roll = async (secrets: string) => {
    const [server] = await instances(t, redis.url, 1, { SESSION_SECRETS: secrets })
    if (server === undefined) throw new Error('no server')
    return server
  }
  const first = await roll(SECRETS)
  const version = versionIn(await pause(first, { message: 'kept' }))
  const old = await client.get(KEY)
  await first.close()
  const second = await roll(`${SECRETS},${fresh}`)
  t.match(await shown(second), { orders: { message: 'kept' } })
  t.equal(await client.get(KEY), old)
  await second.close()
  const third = await roll(`${fresh},${SECRETS}`)
  await until(async () => (await client.get(KEY)) !== old)
  await third.close()
  const last = await roll(fresh)
  t.match(await shown(last), { orders: { message: 'kept' }, version })
  const stranger = await roll(SECRETS)
  const written = await client.get(KEY)
  t.match(await (await fetch(`${stranger.opsUrl}/readyz`)).json(), {
    warnings: [/controls cannot be read/],
  })
  t.match(await pause(stranger), { status: 503 })
  t.equal(await client.get(KEY), written, 'what it cannot read it does not replace')
})

await sideBySide({
  'instances with different first secrets do not take turns at sealing': async (t) => {
    const redis = await testRedis(t)
    const fresh = 'another-secret-of-thirty-two-bytes-or-more'
    const [first] = await instances(t, redis.url, 1, { SESSION_SECRETS: `${SECRETS},${fresh}` })
    const [second] = await instances(t, redis.url, 1, { SESSION_SECRETS: `${fresh},${SECRETS}` })
    if (first === undefined || second === undefined) throw new Error('no server')
    await learns(second, await pause(first))
    const client = await storeClient(t, { redis })
    const texts = new Set<string | null>()
    const since = Date.now()
    await until(async () => {
      texts.add(await client.get(KEY))
      return Date.now() - since > 3000
    })
    t.ok(texts.size <= 3, `${texts.size} texts`)
  },

  'a new instance without the store obeys nothing and says so on /readyz until it has read the controls': async (t) => {
    const redis = await restartable(t)
    const [first] = await instances(t, redis.url, 1)
    if (first === undefined) throw new Error('no server')
    const paused = await pause(first)
    await redis.stop()
    const [late] = await instances(t, redis.url, 1)
    if (late === undefined) throw new Error('no server')
    const warnings = async (): Promise<string> => JSON.stringify(await (await fetch(`${late.opsUrl}/readyz`)).json())
    t.match(await warnings(), /controls have not been read/)
    t.match((await control(late, 'GET', '')).status, 503)
    await redis.start()
    await learns(late, paused)
    t.notMatch(await warnings(), /controls/)
    t.match(await shown(late), { orders: { paused: true } })
  },

  'with IDEMPOTENCY_REPLICAS a PUT counts only once a replica has confirmed it, and is confirmed later by itself':
    async (t) => {
      const master = await testRedis(t, ['--repl-diskless-sync-delay', '0'])
      const [first, second] = await instances(t, master.url, 2, { IDEMPOTENCY_REPLICAS: '1' })
      if (first === undefined || second === undefined) throw new Error('no server')
      const alone = await pause(first, { message: 'alone' })
      t.match(alone, { status: 503, json: { version: Number, error: /replicas do not confirm/ } })
      const replica = await testRedis(t, ['--replicaof', '127.0.0.1', String(master.port)])
      await until(async () => {
        const client = String(await askRedis(replica, ['EXISTS', KEY]))
        return client === '1' && (await control(first, 'PUT', '/notice', { message: 'shared' })).status === 200
      }, 'a replica confirms')
      t.match(await shown(second), { orders: { message: 'alone' }, notice: { message: 'shared' } })
      await replica.close()
      t.equal((await control(first, 'DELETE', '/orders')).status, 503, 'the replica is gone')
      t.match((await control(first, 'GET', '')).json, { orders: null })
      t.equal((await pause(first, { message: 'again' })).status, 503, 'it is known that no replica confirms')
      await until(async () => JSON.stringify(await shown(second)).includes('again'), 'the other learns of it')
      const written = await askRedis(master, ['GET', KEY])
      t.equal((await control(first, 'GET', '')).status, 200)
      t.equal(await askRedis(master, ['GET', KEY]), written, 'it is written once')
      for (let losses = 0; losses < 2; losses++) {
        await askRedis(master, ['FLUSHALL'])
        await until(async () => String(await askRedis(master, ['EXISTS', KEY])) === '1', 'it is written back')
      }
    },
})

await test('many changes at once on three instances are all made, each with a version of its own', async (t) => {
  const redis = await testRedis(t)
  const servers = await instances(t, redis.url, 3)
  const answers = await Promise.all(
    Array.from({ length: 30 }, (_none, at) => pause(servers[at % 3] as TestServer, { subject: `CR${at}` })),
  )
  t.same(new Set(answers.map(({ status }) => status)), new Set([200]))
  t.equal(new Set(answers.map(({ json }) => json['version'])).size, 30)
  for (const server of servers) await until(async () => (await shown(server)).subjects.length === 30)
})
