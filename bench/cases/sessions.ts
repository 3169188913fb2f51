import { SECRETS } from '../../test/support/server/test-server.ts'
import { makeCalls } from '../calls.ts'
import { SESSIONS as LOGINS, thisServer } from '../contenders.ts'
import { makeSessions } from '../made-sessions.ts'
import { atMost, shown, shownMedian, tableOf, type Report } from '../report.ts'
import { measure, startServers, type Running } from '../rest-load.ts'
import { figuresOf, ratio, rounds, spread } from '../rounds.ts'
import type { World } from '../world.ts'
import { wrk } from '../wrk.ts'

const ROUNDS = 3
const SECONDS = 2
const USERS_AT_ONCE = 64
const COUNTS = [1, 10, 1000, 100_000] as const
/** The growth that still counts as flat. */
const MAX_GROWTH = 1.25
const WHY =
  'The session counts are measured one after the other, so a slow or fast phase of the machine affects only one of them.'

/** Measures the cost of a request by the number of sessions, and the memory of a session. */
export async function sessions(): Promise<Report> {
  const { world, contenders } = await startServers([
    thisServer('with sessions', { settings: { SESSION_SECRETS: SECRETS } }),
  ])
  const [server] = contenders as [Running]
  const { program, url } = server
  const usedBefore = await world.redis.usedBytes()
  const made = await makeSessions(world, 100_000 - LOGINS)
  const redisBytes = ((await world.redis.usedBytes()) - usedBefore) / made.length
  const cookies = [...server.cookies, ...made]
  const cells = COUNTS.map((count) => ({
    name: count.toLocaleString('en'),
    program,
    url,
    cookies: cookies.slice(0, count),
  }))
  const [all] = cells.slice(-1)
  for (const cell of cells.slice(0, -1)) await measure(world, cell, 1)
  const rssGrowth = all === undefined ? Number.NaN : await useAll(all)
  const withoutSession = await anonymous(world, server)
  const results = await rounds(cells, ROUNDS, async (cell) => {
    // Uses more sessions than the round will, so none of them is due for a touch during the round.
    if (cell === all) await measure(world, cell, 2 * SECONDS)
    return measure(world, cell, SECONDS)
  })
  const of = figuresOf(results)
  const perSession = (rssGrowth / cookies.length).toFixed(0)
  const memoryRows = [
    ['bytes per session in Redis', redisBytes.toFixed(0)],
    ['bytes per session in the near cache: growth of resident memory after the first use of all', perSession],
    ['Redis commands of requests without a session', withoutSession],
  ]
  const growth = ratio(of('100,000', 'cpuMicrosPerRequest'), of('1', 'cpuMicrosPerRequest'))
  const goal = `CPU time per request flat from 1 to 100,000 sessions (≤ ${MAX_GROWTH} ×)`
  return {
    name: 'sessions',
    title: 'The cost of a request by the number of sessions',
    tables: [
      tableOf(
        'Successive requests use successive sessions',
        [...results.keys()],
        {
          'CPU µs per request': (name) => shown(spread(of(name, 'cpuMicrosPerRequest')), 1),
          'Redis commands': (name) => shownMedian(of(name, 'redisCommandsPerRequest'), 4),
          'requests/s': (name) => shownMedian(of(name, 'requestsPerSecond'), 0),
        },
        'sessions',
      ),
      { title: 'Memory of sessions', columns: ['', ''], rows: memoryRows },
    ],
    goals: [atMost(MAX_GROWTH, goal, growth, { why: WHY })],
    notes: [
      `${ROUNDS} rounds of ${SECONDS} s each. ${LOGINS} sessions were created by logins, the others by the code that a login uses.`,
      'Every session is used at least once a minute. A session that is used less often is touched with every use and read again afterwards, which takes one Redis command and a third of the CPU time of a request.',
    ],
    raw: results,
  }
}

/** Uses every session once, so that all are in the near cache. @returns the growth of resident memory in bytes */
async function useAll({ program, url, cookies }: Running): Promise<number> {
  const before = program.rssBytes()
  await makeCalls(url, cookies.length, USERS_AT_ONCE, (index) => ({
    headers: { cookie: cookies[index] ?? '', 'x-csrf': '1' },
  }))
  return program.rssBytes() - before
}

/** Makes requests without a session. @returns their number and that of the Redis commands they caused, as a text */
async function anonymous({ redis }: World, server: Running): Promise<string> {
  const before = await redis.commands()
  const url = new URL('/auth/session', server.url).href
  const { requests } = await wrk({ url, seconds: 2, connections: 32, headers: {}, cookies: ['theme=dark'] })
  return `${(await redis.commands()) - before} for ${requests.toLocaleString('en')} requests`
}
