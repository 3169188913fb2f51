import * as fc from 'fast-check'
import { test } from 'tap'
import { between, left, REPEAT, RUNS, search, SEARCHED, searchWorld, SEED } from '../support/feed/search/search.ts'
import type { Size } from '../support/feed/search/script.ts'
import { measuredServer } from '../support/server/measured-server.ts'
import { seededRandom } from '../support/time/seeded-random.ts'
import { until } from '../support/time/until.ts'

const WILD = { clock: 'late', losses: true, refusals: true } as const
/** `npm run test:feed` plays a whole day, with 1,000 browsers and 10 sessions, in each of which upstream is lost. */
const WHOLE_DAY = process.env['DAY_BROWSERS']
const BROWSERS = Number(WHOLE_DAY ?? 40)
const SESSIONS = Number(process.env['DAY_SESSIONS'] ?? 2)
/** How much the memory in use may grow from the first half to the second. */
const MAX_GROWTH_BYTES = (WHOLE_DAY === undefined ? 8 : 1.5) * 1024 * 1024
/** Garbage collections before memory is read. On a whole day they take three seconds, until most connections have closed. */
const COLLECTIONS = WHOLE_DAY === undefined ? 1 : 15
const RECOVERY_MS = 40_000
/** Less than some answers have. */
const MAX_UPSTREAM_MESSAGE_BYTES = '65536'

await test('whatever upstream does, browsers get their answers and prices once and in order, or are closed', async (t) => {
  const { random } = seededRandom(SEED)
  const size: Size = { browsers: fc.constant(20), actions: 8, steps: [400, 400] }
  for (let run = 0; run < RUNS; run++) {
    const shortly = (): string => (random() < 0.5 ? '0' : '1')
    const world = await searchWorld(t, WILD, {
      MAX_UPSTREAM_MESSAGE_BYTES,
      FEED_LINGER_SECONDS: shortly(),
      FEED_RECONNECT_SPREAD_SECONDS: shortly(),
      FEED_CACHE_SECONDS: shortly(),
      FEED_SUBSCRIPTIONS: '30',
      FEED_SUBSCRIPTIONS_PER_SOCKET: random() < 0.5 ? '3' : '100',
    })
    t.equal(await search(world, size, 1, SEED + run), undefined)
    t.same(await left(world), [0, 0, 0, 0, 0], `nothing is left of any browser, ${REPEAT}`)
    const errors = world.server.log.filter(({ level }) => Number(level) >= 50)
    t.same(errors, [], `nothing is logged as an error, ${REPEAT}`)
  }
})

await test(`${BROWSERS} browsers come and go while upstream is lost, in ${SESSIONS} sessions`, async (t) => {
  const server = await measuredServer(t, {
    ...SEARCHED,
    MAX_UPSTREAM_MESSAGE_BYTES,
    FEED_LINGER_SECONDS: '1',
    FEED_RECONNECT_SPREAD_SECONDS: '1',
    FEED_SUBSCRIPTIONS_PER_SOCKET: '5',
    // Browsers share a process with this test, and read late at times: nothing may be left out for that.
    FEED_CONFLATE_BYTES: String(1024 * 1024 - 1),
  })
  const world = between(server.upstream, WILD, { port: server.port, origin: server.publicUrl })
  const size: Size = { browsers: fc.constant(BROWSERS), actions: Math.ceil(BROWSERS / 5), steps: [200, 200] }
  const used: number[] = []
  for (let session = 0; session < SESSIONS; session++) {
    t.equal(await search(world, size, 1, SEED + session), undefined)
    await until(async () => (await server.relays()) === 0, 'the server has seen all browsers leave', RECOVERY_MS)
    used.push(await server.usedBytes(COLLECTIONS))
  }
  await until(() => world.upstream.running.length === 0, 'no stream is left once all have gone', RECOVERY_MS)
  // How many connections are still closing differs, so the least values are compared: a leak raises these as well. In the first
  // fifth of the values, caches and compiled code still grow.
  const [from, half] = [Math.floor(used.length / 5), Math.floor(used.length / 2)]
  const growth = Math.min(...used.slice(half)) - Math.min(...used.slice(from, half))
  t.comment(`memory in use, in KiB: ${used.map((bytes) => (bytes / 1024).toFixed(0)).join(' ')}`)
  t.ok(growth < MAX_GROWTH_BYTES, `memory in use grows by ${(growth / 1024).toFixed(0)} KiB from one half to the other`)
})
