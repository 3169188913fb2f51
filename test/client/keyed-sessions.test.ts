import type { RequestListener } from 'node:http'
import type { Socket } from 'node:net'
import { test, type Test } from 'tap'
import { createClient, once, type ServerOptions } from '../../client/dist/client.js'
import { clientOf } from '../support/client/client-of.ts'
import type { PageRequest } from '../support/browser/jar-browser.ts'
import { failure } from '../support/client/page-client.ts'
import { ok } from '../support/upstream/raw-upstream.ts'
import { until } from '../support/time/until.ts'
import { logIn } from '../support/parts.ts'
import { startWorld, API } from '../support/world.ts'
import { PROBLEM, problemBody } from '../support/client/own-problem.ts'

const TRANSFER = '/payment-agents/v1/transfer'
const [FIRST, SECOND] = ['first', 'second'] as const
/** The tag of the session; `none` without a login, `down` where the server cannot tell. All sessions end at one moment. */
type SessionIs = typeof FIRST | typeof SECOND | 'none' | 'down'

/** What happens to a call: its response is lost, or it gets this problem, or with no code an empty 200. */
type Event = 'cut' | readonly [status: number, code: string]

/**
 * A browser whose session changes with the call `at` this index, and the sessions that its calls and its questions for the
 * session carried. What a request carries is settled when it is sent, as with a cookie.
 */
async function changing(t: Test, script: readonly Event[], change: { at: number; to: SessionIs }) {
  let session: SessionIs = FIRST
  const sent: SessionIs[] = []
  const asked: SessionIs[] = []
  const browse: ServerOptions['fetch'] = (url, init) => {
    const requests = url.endsWith('/auth/session') ? asked : sent
    const headers = { ...(init.headers as object), 'x-session': session, 'x-index': String(requests.length) }
    requests.push(session)
    return fetch(url, { ...init, headers })
  }
  const respond: RequestListener = ({ url, headers }, response) => {
    const [is, index] = [headers['x-session']?.toString(), Number(headers['x-index'])]
    if (url === '/auth/session') {
      const limits = { expires_at: 3601, idle_expires_at: 601, scope: 'trade', session: is }
      const body = { now: 1, ...(is === 'none' ? { authenticated: false } : { authenticated: true, ...limits }) }
      return void response.writeHead(is === 'down' ? 503 : 200).end(JSON.stringify(body))
    }
    if (index === change.at) session = change.to
    const event = script[index] ?? ([200, ''] as const)
    if (event === 'cut') return void response.destroy()
    const [status, code] = event
    response.writeHead(status, PROBLEM).end(problemBody(code, { status }))
  }
  const client = await clientOf(t, respond, { fetch: browse })
  const call = (idempotencyKey: string) => client.api(TRANSFER, { method: 'POST', body: '{}', idempotencyKey })
  return { client, call, sent, asked, become: (next: SessionIs) => (session = next) }
}

await test('a call that is in progress is not repeated in another session, in none, or when the server cannot tell which it is', async (t) => {
  for (const to of [SECOND, 'none', 'down'] as const) {
    const { call, sent, asked } = await changing(t, [[409, 'idempotency_in_progress']], { at: 0, to })
    t.match(await failure(call('mine')), { problem: { code: 'idempotency_in_progress' }, outcome: 'unknown' }, to)
    t.same(sent, [FIRST])
    t.same(asked, [FIRST, to])
  }
})

await test('a key whose call was lost is not sent in another session, in none, or when the server cannot tell which it is', async (t) => {
  for (const to of [SECOND, 'none', 'down'] as const) {
    const { call, sent } = await changing(t, ['cut'], { at: 0, to })
    t.match(await failure(call('mine')), { status: 0, outcome: 'unknown' })
    const error = await failure(call('mine'))
    t.match(error, { status: 0, outcome: 'unknown', cause: { message: 'the key belongs to another session' } }, to)
    t.same(sent, [FIRST])
  }
})

await test('a key is sent again as long as the session stays, and another key in the next session', async (t) => {
  const { call, sent, become } = await changing(t, ['cut', 'cut'], { at: 9, to: FIRST })
  await failure(call('mine'))
  await failure(call('mine'))
  t.equal((await call('mine')).status, 200)
  become(SECOND)
  t.equal((await call('yours')).status, 200)
  await failure(call('mine'))
  t.same(sent, [FIRST, FIRST, FIRST, SECOND])
})

await test('sessions that end in the same second are told apart, and the first one is known again', async (t) => {
  const { call, sent, become } = await changing(t, ['cut', 'cut'], { at: 9, to: FIRST })
  await failure(call('mine'))
  await failure(call('mine'))
  become(SECOND)
  t.match(await failure(call('mine')), { cause: { message: 'the key belongs to another session' } })
  become(FIRST)
  t.equal((await call('mine')).status, 200)
  t.same(sent, [FIRST, FIRST, FIRST])
})

await test('a call that was not executed is not repeated in another session by itself, but when the page calls again', async (t) => {
  for (const code of ['upstream_unreachable', 'credential_renewed', 'session_store_unavailable']) {
    const { call, sent } = await changing(t, [[503, code]], { at: 0, to: SECOND })
    t.match(await failure(call('mine')), { problem: { code }, outcome: undefined }, code)
    t.same(sent, [FIRST])
    t.equal((await call('mine')).status, 200)
    t.same(sent, [FIRST, SECOND])
  }
})

await test('an order without a key that was not executed is repeated in its session alone', async (t) => {
  for (const code of ['upstream_unreachable', 'credential_renewed']) {
    for (const to of [SECOND, 'none', 'down'] as const) {
      const { client, sent } = await changing(t, [[503, code]], { at: 0, to })
      const order = client.api(TRANSFER, { method: 'POST', body: '{}' })
      t.match(await failure(order), { problem: { code }, outcome: undefined }, `${code}, ${to}`)
      t.same(sent, [FIRST])
    }
    const { client, sent } = await changing(t, [[503, code]], { at: 9, to: SECOND })
    t.equal((await client.api(TRANSFER, { method: 'POST', body: '{}' })).status, 200)
    t.same(sent, [FIRST, FIRST])
  }
})

await test('a key that was refused because the session had ended can be sent after the next login', async (t) => {
  const { call, sent, become } = await changing(t, [[401, 'session_expired']], { at: 0, to: 'none' })
  t.match(await failure(call('mine')), { status: 401, outcome: undefined })
  become(SECOND)
  t.equal((await call('mine')).status, 200)
  t.same(sent, [FIRST, SECOND])
})

await test('a key whose second call is not executed keeps the unknown outcome of the first, and its session', async (t) => {
  const { call, sent, become } = await changing(t, ['cut', [429, 'rate_limited']], { at: 9, to: FIRST })
  await failure(call('mine'))
  t.match(await failure(call('mine')), { status: 429, problem: { code: 'rate_limited' }, outcome: 'unknown' })
  become(SECOND)
  t.match(await failure(call('mine')), { status: 0, outcome: 'unknown' })
  t.same(sent, [FIRST, FIRST])
})

await test('of two calls with one key, the one that was not executed leaves the key in its session', async (t) => {
  const { call, sent, become } = await changing(t, [[429, 'rate_limited']], { at: 9, to: FIRST })
  const both = [failure(call('mine')), call('mine')]
  await Promise.all(both)
  become(SECOND)
  t.match(await failure(call('mine')), { status: 0, outcome: 'unknown' })
  t.same(sent, [FIRST, FIRST])
})

await test('once() does not order again in another session, and looks a second time', async (t) => {
  for (const isMade of [true, false]) {
    const { call, sent } = await changing(t, ['cut'], { at: 0, to: SECOND })
    let looked = 0
    const result = once(call, { isMade: () => looked++ > 0 && isMade })
    if (isMade) t.equal(await result, undefined)
    else t.match(await failure(result), { status: 0, outcome: 'unknown' })
    t.equal(looked, 2)
    t.same(sent, [FIRST])
  }
})

await test('a page that knows its session asks once for all calls with keys, and again when the session has changed', async (t) => {
  const { client, call, asked, become } = await changing(t, [], { at: 9, to: FIRST })
  await client.session.check()
  for (const key of ['one', 'two', 'three']) await call(key)
  t.same(asked, [FIRST, FIRST])
  become(SECOND)
  await client.session.check()
  for (const key of ['four', 'five']) await call(key)
  t.same(asked, [FIRST, FIRST, SECOND, SECOND])
})

await test('a page that could not ask asks again with the next key', async (t) => {
  const { client, call, sent, become } = await changing(t, ['cut', 'cut'], { at: 9, to: FIRST })
  await client.session.check()
  become('down')
  await failure(call('one'))
  become(FIRST)
  t.match(await failure(call('one')), { status: 0, outcome: 'unknown' })
  t.same(sent, ['down'])
  await failure(call('two'))
  t.equal((await call('two')).status, 200)
  t.same(sent, ['down', FIRST, FIRST])
})

await test('a key whose session was never known is not sent again', async (t) => {
  for (const is of ['none', 'down'] as const) {
    const { call, sent, become } = await changing(t, ['cut'], { at: 9, to: is })
    become(is)
    await failure(call('mine'))
    t.match(await failure(call('mine')), { status: 0, outcome: 'unknown' }, is)
    t.same(sent, [is])
  }
})

await test('an abort while the package asks for the session rejects with its reason', async (t) => {
  const leaving = new AbortController()
  let asked = 0
  const client = await clientOf(t, ({ url }, response) => {
    if (url !== '/auth/session') return void response.destroy()
    if (++asked > 1) leaving.abort(new Error('left'))
    const times = { now: 1, expires_at: 3601, idle_expires_at: 601 }
    response.end(JSON.stringify({ authenticated: true, session: FIRST, scope: '', ...times }))
  })
  const init = { method: 'POST', idempotencyKey: 'mine', signal: leaving.signal } as const
  t.match(await failure(client.api(TRANSFER, init)), { outcome: 'unknown' })
  t.match(await failure(client.api(TRANSFER, init)), { code: 'aborted', cause: { message: 'left' } })
})

await test('an order that is in progress reaches upstream once, although its user logs in again meanwhile', async (t) => {
  const world = await startWorld(t, API)
  const { upstream } = world
  const { browser, server } = world
  const started = new Date().getSeconds()
  await until(() => new Date().getSeconds() !== started, 'the next session ends in another second')
  let logins = 0
  const client = createClient({
    baseUrl: server.url,
    fetch: async (url, init) => {
      const response = await browser.fetch(url, init as PageRequest)
      // Another tab logs in before the page learns that its order is in progress.
      if (response.status === 409 && logins++ === 0) await logIn(browser, server.url)
      return response
    },
  })
  t.teardown(() => client.close())
  const waiting: Socket[] = []
  upstream.answer = (_request, socket) => void waiting.push(socket)
  const leaving = new AbortController()
  const order = { method: 'POST', body: '{}', idempotencyKey: 'mine' } as const
  const first = failure(client.api(TRANSFER, { ...order, signal: leaving.signal }))
  await until(() => upstream.requests.length === 1)
  leaving.abort()
  await first
  const error = await failure(client.api(TRANSFER, order))
  t.match(error, { problem: { code: 'idempotency_in_progress' }, outcome: 'unknown' })
  t.equal(logins, 1)
  t.match(await failure(client.api(TRANSFER, order)), { status: 0, outcome: 'unknown' })
  t.equal(upstream.requests.length, 1)
  for (const socket of waiting) socket.write(ok('{"id":1}'))
})
