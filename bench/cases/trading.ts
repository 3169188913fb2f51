import { setTimeout as pause } from 'node:timers/promises'
import { costOf } from '../calls.ts'
import { publicOrigin, thisServer, THIS_SERVER } from '../contenders.ts'
import { closeRelays, handshakes, openRelays, startPump } from '../pumps.ts'
import { bare, BARE_WS } from '../relay-contenders.ts'
import { atMost, shown, shownMedian, tableOf, type Report } from '../report.ts'
import { startServers, type Choice } from '../rest-load.ts'
import { figuresOf, ratio, rounds, spread } from '../rounds.ts'

const ROUNDS = 9
const WARM_UP_ROUNDS = 5
const SOCKETS = 200
/** Time to return what sockets hold in Redis after their end. */
const SETTLE_MS = 200
const LIMIT = 1.5
const WHY =
  'The bare relay sends a fixed token: it looks for no session, counts no places among all instances, and checks no Origin.'
/** Ten sockets of each session, and those of the round before, which may still be ending. */
const LIMITS = { MAX_RELAYS_PER_SESSION: '20' }
const PATH = '/ws/trading/CR9000'

/** Measures a trading socket from its handshake to its end: the one-time URL, both sockets, and the first frame. */
export async function trading({ before }: Choice): Promise<Report> {
  const ends = { browsers: startPump('browsers'), upstream: startPump('upstream sockets') }
  const wsUrl = `ws://127.0.0.1:${await ends.upstream.order({ do: 'listen' })}`
  const servers = [
    thisServer(THIS_SERVER, { settings: LIMITS }),
    ...(before === undefined ? [] : [thisServer('before', { settings: LIMITS, root: before })]),
  ]
  const { world, contenders } = await startServers(servers, { wsUrl })
  const { redis, upstream } = world
  const own = contenders.map(({ name, program, url, cookies }) => {
    const port = Number(new URL(url).port)
    return { name, program, port, requests: handshakes(SOCKETS, PATH, publicOrigin(port), cookies) }
  })
  const relay = await bare(BARE_WS, 'ws-relay.ts', wsUrl, upstream.url)
  const all = [...own, { ...relay, requests: own[0]?.requests ?? [] }]
  const measure = async ({ name, program, port, requests }: (typeof all)[number]) => {
    const asked = await upstream.requests()
    const { cost } = await costOf(redis, program, SOCKETS, async () => {
      await openRelays(ends, port, requests)
      await ends.browsers.order({ do: 'receive', frames: 0 })
      const pace = { framesPerWrite: 1, framesPerSecond: 10 * SOCKETS, seconds: 0.1 }
      const sent = await ends.upstream.order({ do: 'pump', ...pace })
      const received = await ends.browsers.order({ do: 'receive', frames: sent })
      if (sent !== SOCKETS || received !== sent) throw new Error(`${name}: ${received} of ${sent} frames arrived`)
      await closeRelays(ends)
      await pause(SETTLE_MS)
    })
    const urls = (await upstream.requests()) - asked
    if (urls !== SOCKETS) throw new Error(`${name}: ${urls} one-time URLs for ${SOCKETS} sockets`)
    return cost
  }
  for (const contender of all) {
    for (let round = 0; round < WARM_UP_ROUNDS; round++) await measure(contender)
  }
  const results = await rounds(all, ROUNDS, measure)
  const of = figuresOf(results)
  const toBare = (name: string) => ratio(of(name, 'cpuMicros'), of(BARE_WS, 'cpuMicros'))
  return {
    name: 'trading',
    title: 'A trading socket: one-time URL, both sockets, the first frame, and the end',
    tables: [
      tableOf('Each socket', [...results.keys()], {
        'CPU µs': (name) => shown(spread(of(name, 'cpuMicros')), 0),
        [`${BARE_WS} = 1`]: (name) => shown(toBare(name)),
        'Redis commands': (name) => shownMedian(of(name, 'redisCommands'), 3),
        'Redis CPU µs': (name) => shownMedian(of(name, 'redisMicros'), 0),
      }),
    ],
    goals: [atMost(LIMIT, `CPU time of a trading socket ≤ ${LIMIT} × a ${BARE_WS}`, toBare(THIS_SERVER), { why: WHY })],
    notes: [
      `${ROUNDS} rounds of ${SOCKETS} sockets after ${WARM_UP_ROUNDS} as a warm-up. The bench checks that each has a one-time URL of its own, and that each gets its frame.`,
      `The ${BARE_WS} requests a one-time URL for each browser, too, with a fixed bearer token. It accepts the browser before, and writes no log. This server also finds the session, counts its sockets in Redis, and watches them.`,
    ],
    raw: results,
  }
}
