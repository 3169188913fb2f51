import { costOfCalls } from '../calls.ts'
import { BARE, THIS_SERVER } from '../contenders.ts'
import { BROWSER_HEADERS } from '../load/request-texts.ts'
import { atMost, shown, shownMedian, tableOf, type Report } from '../report.ts'
import { startSelected, type Choice } from '../rest-load.ts'
import { figuresOf, ratio, rounds, spread } from '../rounds.ts'
import { AGENTS, AGENTS_PATH, receipt, TRANSFER_PATH } from '../upstream-routes.ts'

const ROUNDS = 15
const CALLS = 500
const WARM_UP_CALLS = 1500
const AT_ONCE = 8
const LIMIT = 1.5
const WHY =
  'A call costs this server about 40 µs more than the bare proxy, whatever its size: see the GET. The kernel takes most of the rest, and as much from both.'

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
  const servers = contenders.filter(({ name }) => !name.includes('no log'))
  const kinds = Object.entries(LOADS).flatMap(([load, { path, request }]) =>
    servers.map((server) => ({ name: nameOf(load, server.name), server, path, request })),
  )
  const measure = ({ server, path, request }: (typeof kinds)[number], calls: number) => {
    const { program, cookies, url } = server
    const headers = { ...BROWSER_HEADERS, 'content-type': 'application/json' }
    return costOfCalls(world.redis, { program, url: new URL(`/api${path}`, url).href }, calls, AT_ONCE, (index) => ({
      ...request,
      headers: { ...headers, cookie: cookies[index % cookies.length] ?? '' },
    }))
  }
  for (const kind of kinds) await measure(kind, WARM_UP_CALLS)
  const results = await rounds(kinds, ROUNDS, (kind) => measure(kind, CALLS))
  const of = figuresOf(results)
  const names = servers.map(({ name }) => name)
  const toBare = (load: string, name: string) =>
    ratio(of(nameOf(load, name), 'cpuMicros'), of(nameOf(load, BARE), 'cpuMicros'))
  const perLoad = (cell: (load: string, name: string) => string) =>
    Object.fromEntries(Object.keys(LOADS).map((load) => [load, (name: string) => cell(load, name)]))
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
        perLoad((load, name) => shown(spread(of(nameOf(load, name), 'cpuMicros')), 0)),
      ),
      tableOf(
        'p50 ms',
        names,
        perLoad((load, name) => shownMedian(of(nameOf(load, name), 'p50Ms'), 2)),
      ),
    ],
    goals: Object.keys(LOADS).map((load) =>
      atMost(LIMIT, `CPU time of a ${load} ≤ ${LIMIT} × ${BARE}`, toBare(load, THIS_SERVER), { why: WHY }),
    ),
    notes: [
      `${ROUNDS} rounds of ${CALLS} calls each, ${AT_ONCE} at a time, after a warm-up of ${WARM_UP_CALLS}. Each round starts with another kind.`,
      'Upstream responds to a POST when its whole body has arrived, with its length. The bench compares every response with the right one.',
      ...missing,
    ],
    raw: results,
  }
}

function nameOf(load: string, server: string): string {
  return `${load}, ${server}`
}
