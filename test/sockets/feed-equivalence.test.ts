import { randomInt } from 'node:crypto'
import * as fc from 'fast-check'
import { test, type Test } from 'tap'
import { type Arena, play, type Served } from '../support/feed/equivalence.ts'
import { MarketUpstream } from '../support/feed/market-upstream.ts'
import { FAULTS } from '../support/feed/planted-faults.ts'
import { script } from '../support/feed/script.ts'
import { testServer } from '../support/server/world.ts'

const MORE_RUNS = process.env['RUNS']
const RUNS = Number(MORE_RUNS ?? 60)
/**
 * The same sessions each time, unless more are asked for: `npm run test:feed` plays 2,000 new ones.
 * `SEED=… RUNS=2000 npm test -- --timeout=1800 test/sockets/feed-equivalence.test.ts` repeats those of a failed run.
 */
const SEED = Number(process.env['SEED'] ?? (MORE_RUNS === undefined ? 1 : randomInt(2 ** 31)))
/** Sessions in which each planted fault has to happen, and to be found. */
const FAULTY_RUNS = 3
/** How long each wait for a message that never comes takes. */
const FAULTY_PATIENCE_MS = 200

/** Nothing is kept that a move of prices would change; several sockets share the streams; nobody reaches a limit. */
const SHARED = {
  PUBLIC_FEED: 'shared',
  FEED_CACHE_SECONDS: '0',
  FEED_LINGER_SECONDS: '1',
  FEED_SUBSCRIPTIONS: '80',
  FEED_SUBSCRIPTIONS_PER_SOCKET: '4',
  FEED_REQUESTS_PER_MINUTE: '100000',
  FEED_MAX_OWN_SOCKETS: '1000',
}

async function served(t: Test, upstream: MarketUpstream, settings: Record<string, string> = {}): Promise<Served> {
  const { url, port } = await testServer(t, {
    AUTH_URL: 'http://127.0.0.1:9',
    API_URL: 'http://127.0.0.1:9',
    WS_URL: upstream.wsUrl,
    MAX_PUBLIC_RELAYS_PER_IP: '1000',
    PUBLIC_HANDSHAKES_PER_MINUTE: '0',
    LOG_LEVEL: 'warn',
    ...settings,
  })
  return { url: `ws://127.0.0.1:${port}/ws/public`, origin: url }
}

/** Plays sessions until one shows a difference, and reduces that one to its smallest. @returns undefined if none does */
async function search(arena: Arena, runs: number): Promise<string | undefined> {
  const property = fc.asyncProperty(script, async (script) => {
    const why = await play(script, arena)
    if (why !== undefined) throw new Error(why)
  })
  const { failed, errorInstance, counterexample, counterexamplePath } = await fc.check(property, {
    seed: SEED,
    numRuns: runs,
  })
  if (!failed) return undefined
  return `${String(errorInstance)}\n${JSON.stringify(counterexample)}\npath ${counterexamplePath}`
}

await test('each of five faults between a server and its members shows as a difference', async (t) => {
  const upstream = await MarketUpstream.start(t, SEED)
  const alone = await served(t, upstream)
  for (const plant of FAULTS) {
    const { name } = plant()
    let [played, happened, found] = [0, 0, 0]
    for (const session of fc.sample(script, { seed: SEED, numRuns: 200 })) {
      if (happened === FAULTY_RUNS) break
      const fault = plant()
      const shared = { ...alone, deliver: fault.deliver }
      const why = await play(session, { upstream, alone, shared, patienceMs: FAULTY_PATIENCE_MS })
      played += 1
      if (fault.happened) happened += 1
      if (fault.happened && why !== undefined) found += 1
      if (!fault.happened) t.equal(why, undefined, `no difference without a fault, SEED=${SEED}`)
    }
    t.same([happened, found], [FAULTY_RUNS, FAULTY_RUNS], `${name}: found in ${played} sessions, SEED=${SEED}`)
  }
})

await test(`PUBLIC_FEED=shared: each member receives what it would receive alone, in ${RUNS} sessions`, async (t) => {
  const upstream = await MarketUpstream.start(t, SEED)
  const alone = await served(t, upstream)
  const shared = await served(t, upstream, SHARED)
  t.equal(await search({ upstream, alone, shared }, RUNS), undefined, `SEED=${SEED} RUNS=${RUNS}`)
})
