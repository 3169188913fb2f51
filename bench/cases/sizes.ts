import { costOfCalls, type CallCost } from '../calls.ts'
import { BARE, THIS_SERVER } from '../contenders.ts'
import { BROWSER_HEADERS } from '../load/request-texts.ts'
import { atMost, shown, tableOf, type Report } from '../report.ts'
import { startSelected, type Choice, type Running } from '../rest-load.ts'
import { figures, pairs, ratioToBase, spread, type Pair } from '../rounds.ts'
import { AGENTS, AGENTS_PATH, receipt, TRANSFER_PATH } from '../upstream-routes.ts'

const ROUNDS = 15
const CALLS = 500
const WARM_UP_CALLS = 1500
const AT_ONCE = 8
const LIMIT = 1.5
const WHY =
  'A call costs this server about 40 µs more than the bare proxy, whatever its size (see the GET); the kernel takes most of the rest, and as much from both.'

const post = (bytes: number) => ({
  path: TRANSFER_PATH,
  request: { method: 'POST' as const, body: `{"memo":"${'x'.repeat(bytes - 11)}"}`, expected: receipt(bytes) },
})
/** What is sent, and the response to it. */
const LOADS = {
  'POST of 1 KB': post(1024),
  'POST of 100 KB': post(102_400),
  'GET of 100 KB': { path: AGENTS_PATH, request: { method: 'GET', expected: AGENTS } },
} as const

/** Measures bodies of 1 KB and 100 KB. */
export async function sizes({ before }: Choice): Promise<Report> {
  const { world, contenders, missing } = await startSelected({ with: [BARE, 'nginx'], ...(before && { before }) })
  const bare = contenders.find(({ name }) => name === BARE)
  if (bare === undefined) throw new Error(missing.join(', '))
  const others = contenders.filter(({ name }) => !name.includes(BARE))
  const headers = { ...BROWSER_HEADERS, 'content-type': 'application/json' }
  const paired = new Map<string, Map<string, Pair<CallCost>>>()
  for (const [load, { path, request }] of Object.entries(LOADS)) {
    const measure = ({ program, cookies, url }: Running, calls = CALLS): Promise<CallCost> =>
      costOfCalls(world.redis, { program, url: new URL(`/api${path}`, url).href }, calls, AT_ONCE, (index) => ({
        ...request,
        headers: { ...headers, cookie: cookies[index % cookies.length] ?? '' },
      }))
    for (const contender of [bare, ...others]) await measure(contender, WARM_UP_CALLS)
    const both = (two: readonly Running[]) => Promise.all(two.map((contender) => measure(contender)))
    paired.set(load, await pairs(bare, others, ROUNDS, both))
  }
  const toBare = (load: string, name: string) => ratioToBase(paired.get(load)?.get(name), 'cpuMicros')
  const perLoad = (cell: (load: string, name: string) => string) =>
    Object.fromEntries(Object.keys(LOADS).map((load) => [load, (name: string) => cell(load, name)]))
  const names = others.map(({ name }) => name)
  return {
    name: 'sizes',
    title: 'Larger bodies, proxied',
    tables: [
      tableOf(
        `CPU time per call, ${BARE} = 1`,
        names,
        perLoad((load, name) => shown(toBare(load, name))),
      ),
      tableOf(
        'CPU µs per call',
        names,
        perLoad((load, name) => shown(spread(figures(paired.get(load)?.get(name)?.other, 'cpuMicros')), 0)),
      ),
    ],
    goals: Object.keys(LOADS).map((load) =>
      atMost(LIMIT, `CPU time of a ${load} ≤ ${LIMIT} × ${BARE}`, toBare(load, THIS_SERVER), { why: WHY }),
    ),
    notes: [
      `${ROUNDS} rounds for each contender, in which it shares a processor with the ${BARE}; both get ${CALLS} calls, ${AT_ONCE} at a time, after a warm-up of ${WARM_UP_CALLS}.`,
      'Upstream responds to a POST when its whole body has arrived, with its length. The bench compares every response with the right one.',
      ...missing,
    ],
    raw: paired,
  }
}
