import { setTimeout as delay } from 'node:timers/promises'
import { test } from 'tap'
import { awakeClock } from '../support/time/awake-clock.ts'
import { ok, rawUpstream } from '../support/upstream/raw-upstream.ts'
import { restClient } from '../support/upstream/rest-client.ts'

const MAX_AGE_MS = 1000
const LOAD_MS = 4500
/** On a busy machine the last request may reach upstream late. */
const LATE_MS = 1000

for (const [what, connections, loops] of [
  ['connections are free', 8, 3],
  ['all connections are taken, and requests wait for one', 2, 6],
] as const) {
  await test(`no connection is used for longer than maxConnectionMs, while ${what}`, async (t) => {
    const upstream = await rawUpstream(t)
    const rest = restClient(t, upstream, connections, { UPSTREAM_MAX_CONNECTION_SECONDS: String(MAX_AGE_MS / 1000) })
    const clock = awakeClock(t)
    const spans = new Map<number, { first: number; last: number }>()
    upstream.answer = ({ connection, target }, socket) => {
      const now = clock()
      spans.set(connection, { first: spans.get(connection)?.first ?? now, last: now })
      // One request takes longer than its connection may be used.
      setTimeout(() => socket.write(ok()), target === '/slow' ? 2.5 * MAX_AGE_MS : 2)
    }
    const outcomes = new Map<string, number>()
    const post = async (path: string): Promise<void> => {
      const { is } = await rest.exchange({ method: 'POST', path, template: path, headers: [], body: null })
      outcomes.set(is, (outcomes.get(is) ?? 0) + 1)
    }
    const until = performance.now() + LOAD_MS
    let sent = 0
    const loop = async (): Promise<void> => {
      while (performance.now() < until) await post(`/${++sent}`)
    }
    await Promise.all([post('/slow'), ...Array.from({ length: loops }, loop)])

    t.same([...outcomes], [['answered', sent + 1]], 'every request gets its response')
    t.equal(upstream.requests.length, sent + 1)
    t.equal(new Set(upstream.requests.map(({ target }) => target)).size, sent + 1, 'each request is sent once')
    t.ok(spans.size >= 2 * Math.min(connections, loops), `${spans.size} connections were opened`)
    t.ok(spans.size < 50, 'connections are reused')
    for (const { first, last } of spans.values()) {
      t.ok(last - first <= MAX_AGE_MS + LATE_MS, `used for ${Math.round(last - first)} ms`)
    }
  })
}

await test('an idle connection is reused within maxConnectionMs and not after it, whatever keep-alive upstream announces', async (t) => {
  const upstream = await rawUpstream(t)
  const rest = restClient(t, upstream, 8, { UPSTREAM_MAX_CONNECTION_SECONDS: '2' })
  upstream.answer = (_request, socket) => void socket.write(ok('{}', 'Keep-Alive: timeout=60\r\n'))
  const connectionOfNext = async (): Promise<number | undefined> => {
    await rest.exchange({ method: 'POST', path: '/', template: '/', headers: [], body: null })
    // A connection is free once undici has read the end of the response.
    await delay(20)
    return upstream.requests.at(-1)?.connection
  }
  t.equal(await connectionOfNext(), 1)
  t.equal(await connectionOfNext(), 1)
  await delay(2100)
  t.equal(await connectionOfNext(), 2)
})
