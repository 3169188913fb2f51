import { join } from 'node:path'
import { test } from 'tap'
import { samplesOf } from '../support/telemetry/metrics.ts'
import { SecretVolume } from '../support/config/secret-volume.ts'
import { ALONE } from '../support/server/settings.ts'
import { SECRETS, testRedis, testServer } from '../support/server/test-server.ts'
import { FINGERPRINT_KEY } from '../../src/store/keys.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { secretFingerprint } from '../../src/telemetry/secret-metrics.ts'
import { startWorld } from '../support/world.ts'
import { until } from '../support/time/until.ts'
import { scripted } from '../support/login/token-endpoint.ts'

const NEW = 'a-new-secret-of-thirty-two-bytes-at-least'

/** The fingerprints without their places. */
const prints = (list: readonly string[]): string[] => list.map((each) => each.slice(2)).toSorted()

await test('bff_secret_processes has the same fingerprints on two instances of one Redis, and others on another Redis', async (t) => {
  const { settings } = await startWorld(t, { provider: scripted })
  const [redis, otherRedis] = [await testRedis(t), await testRedis(t)]
  const dir = t.testdir({ first: {}, second: {}, elsewhere: {} })
  const fingerprintsOf = async (name: string, redisUrl: string, secrets: string): Promise<string[]> => {
    const volume = new SecretVolume(join(dir, name), { SESSION_SECRETS: secrets })
    const { REDIS_URL: _, ...rest } = settings
    const server = await testServer(t, { ...rest, REDIS_URL: redisUrl, CLIENT_SECRET: NEW, ...volume.settings })
    let samples = new Map<string, number>()
    // A scrape does not wait for a slow Redis, and leaves out what only that could tell.
    await until(async () => (samples = await samplesOf(server.opsUrl, 'bff_secret_processes')).size > 0)
    return [...samples.keys()].map((labels) => labels.replace(/^.*place="(\d)",fingerprint="(\w+)"$/, '$1 $2'))
  }
  const [first, second, elsewhere] = await Promise.all([
    fingerprintsOf('first', redis.url, `${SECRETS},${NEW}`),
    fingerprintsOf('second', redis.url, `${NEW},${SECRETS}`),
    fingerprintsOf('elsewhere', otherRedis.url, `${SECRETS},${NEW}`),
  ])
  t.equal(first.length, 3)
  t.equal(new Set(prints(first)).size, 3, 'the same text has another fingerprint as another setting')
  t.same(prints(first), prints(second), 'whatever its place')
  t.not(first[0], second[0])
  t.same(
    prints(first).filter((print) => prints(elsewhere).includes(print)),
    [],
    'nothing is learned from another store',
  )
})

await test('a scrape asks the store once for the key of the fingerprints, though two metrics need it', async (t) => {
  const store = new MemoryStore()
  const read = store.readUntracked.bind(store)
  let asked = 0
  store.readUntracked = async (key) => {
    if (key === FINGERPRINT_KEY) asked++
    return read(key)
  }
  const volume = new SecretVolume(t.testdir(), { SESSION_SECRETS: NEW })
  const { opsUrl } = await testServer(t, { ...ALONE, ...volume.settings }, store)
  for (const isFirst of [true, false]) {
    const metrics = await (await fetch(`${opsUrl}/metrics`)).text()
    for (const name of ['bff_secret_processes', 'bff_session_store_info'])
      t.match(metrics, new RegExp(`^${name}\\{`, 'm'))
    t.equal(asked, isFirst ? 2 : 3, 'once more where it is made')
  }
})

await test('A fingerprint is 32 bits, and another one under each key', (t) => {
  const prints = Array.from({ length: 100 }, (_, index) => secretFingerprint(`key ${index}`, 'OPS_TOKEN', NEW))
  t.ok(prints.every((print) => /^[0-9a-f]{8}$/.test(print)))
  t.equal(new Set(prints).size, 100)
  t.end()
})
