import * as fc from 'fast-check'
import { test } from 'tap'
import { play } from '../support/feed/search/play.ts'
import { scripts, type Script } from '../support/feed/search/script.ts'
import { between, left, SEARCHED } from '../support/feed/search/search.ts'
import { testServer } from '../support/server/test-server.ts'
import { ScriptedUpstream } from '../support/upstream/scripted-upstream.ts'
import { FRAME_FAULTS } from './frame-faults.ts'
import { FrameProxy } from './frame-proxy.ts'

/** Every so many pieces suffer. The seed says where to begin, and what happens in the sessions. */
const STEP = Number(process.env['STEP'] ?? 211)
const SEED = Number(process.env['SEED'] ?? 1)
/** Each has a server, and waits most of the time. */
const SEATS = 6
/** Pieces of a session that suffer. Some have fewer. */
const PIECES = 60
/** Upstream lags, and leaves some requests without an answer or answers them twice. */
const BEHAVIOUR = { clock: 'late', losses: true, refusals: false } as const
const NOWHERE = 'http://127.0.0.1:9'

/** What browsers and upstream do in a session. Upstream loses no connection. */
function scriptOf(seed: number): Script {
  const size = { browsers: fc.constant(5), actions: 4, steps: [40, 40] } as const
  const [script = { browsers: 0, steps: [], seed }] = fc.sample(scripts(BEHAVIOUR, size), { seed, numRuns: 1 })
  const steps = script.steps.filter((step) => !('do' in step) || ['move', 'tell', 'answer'].includes(step.do))
  return { ...script, steps }
}

await test(`Whatever a piece of a socket of the feed suffers, browsers get their answers and prices once and in order, or are closed (SEED=${SEED})`, async (t) => {
  const all = Object.keys(FRAME_FAULTS).flatMap((fault) => Array.from({ length: PIECES }, (_, at) => ({ fault, at })))
  // A silent connection is lost after fifteen seconds.
  const runs = all.filter(
    ({ fault }, number) => number % STEP === SEED % STEP && (STEP === 1 || !fault.includes('never')),
  )
  let played = 0
  const player = async (): Promise<void> => {
    const [scripted, proxy] = [await ScriptedUpstream.start(t), await FrameProxy.start(t, 'client')]
    proxy.target = Number(scripted.host.split(':')[1])
    const server = await testServer(t, {
      ...SEARCHED,
      AUTH_URL: NOWHERE,
      API_URL: NOWHERE,
      WS_URL: `ws://127.0.0.1:${proxy.port}`,
      MAX_UPSTREAM_MESSAGE_BYTES: '65536',
      FEED_LINGER_SECONDS: '0',
      FEED_RECONNECT_SPREAD_SECONDS: '0',
      FEED_SUBSCRIPTIONS_PER_SOCKET: '3',
    })
    const world = { ...between(scripted, BEHAVIOUR, { port: server.port, origin: server.url }), server }
    for (let run = runs.shift(); run !== undefined; run = runs.shift()) {
      const { fault, at } = run
      proxy.arm(at, FRAME_FAULTS[fault], fault.startsWith('comes with'))
      const wrong = await play(scriptOf(SEED + at), world)
      await proxy.suffered
      if (proxy.hit !== undefined) played++
      t.same(wrong, [], `${proxy.hit} (${at}) ${fault}`)
      proxy.cut()
    }
    // A stream that upstream has not let go is asked for again only after ten seconds.
    if (STEP === 1) t.same(await left(world), [0, 0, 0, 0, 0], 'nothing is left of any browser')
    t.same(
      server.log.filter(({ level }) => Number(level) >= 50),
      [],
      'nothing is logged as an error',
    )
  }
  await Promise.all(Array.from({ length: SEATS }, player))
  t.comment(`${played} pieces`)
  t.ok(played > 0)
})
