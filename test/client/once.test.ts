import { test, type Test } from 'tap'
import { ApiError, once, SocketError } from '../../client/dist/client.js'
import { apiWorld } from '../support/upstream/api-world.ts'
import { clientOf } from '../support/client/client-of.ts'
import { failure, pageClient } from '../support/client/page-client.ts'
import { ok } from '../support/upstream/raw-upstream.ts'

const TRANSFER = '/payment-agents/v1/transfer'
const SESSION = { authenticated: true, now: 1, expires_at: 3601, idle_expires_at: 601, scope: 'trade' }

type Event = 'ok' | 'cut' | 'cut in the body' | readonly [status: number, code: string, retryAfter?: string]

/** A server that does these things with the calls it gets, one after the other, and the keys of the calls. */
async function scripted(t: Test, script: readonly Event[]) {
  const left = [...script]
  const keys: (string | undefined)[] = []
  const client = await clientOf(t, ({ headers, url }, response) => {
    if (url === '/auth/session') return void response.end(JSON.stringify(SESSION))
    keys.push(headers['idempotency-key'] as string | undefined)
    const next = left.shift() ?? 'ok'
    if (next === 'cut') return void response.destroy()
    if (next === 'cut in the body') {
      response.writeHead(200, { 'content-length': '10' })
      return void response.write('{"a"', () => response.destroy())
    }
    const [status, code, retryAfter = '0'] = next === 'ok' ? [200, ''] : next
    const outcome = code === 'outcome_unknown' ? 'unknown' : undefined
    // Without a code, it is the response of the trading service.
    const type = code === '' ? 'application/json' : 'application/problem+json'
    response.writeHead(status, { 'content-type': type, 'retry-after': retryAfter })
    response.end(JSON.stringify({ code, status, outcome }))
  })
  const asked: boolean[] = []
  const send = (idempotencyKey: string) => client.api(TRANSFER, { method: 'POST', json: {}, idempotencyKey })
  const order = (isMade: boolean, read: typeof send = send) =>
    once(read, {
      isMade: () => {
        asked.push(isMade)
        return isMade
      },
    })
  /** An order that reads the body of its answer. */
  const orderWhole = (isMade: boolean) =>
    order(isMade, async (key) => {
      const response = await send(key)
      await response.clone().text()
      return response
    })
  return { keys, asked, order, orderWhole, client }
}

await test('with a key, a call is repeated while the first is in progress, and when nothing was sent', async (t) => {
  const script = [
    [409, 'idempotency_in_progress'],
    [503, 'session_store_unavailable'],
  ] as const
  const { client, keys } = await scripted(t, script)
  t.equal((await client.api(TRANSFER, { method: 'POST', json: {}, idempotencyKey: true })).status, 200)
  t.equal(keys.length, 3)
  t.equal(new Set(keys).size, 1)
  const twice = await scripted(t, [script[1], script[1]])
  t.match(await failure(twice.client.api(TRANSFER, { method: 'POST', idempotencyKey: 'mine' })), { status: 503 })
  t.same(twice.keys, ['mine', 'mine'])
})

await test('with a key, a call whose outcome is unknown is not repeated', async (t) => {
  for (const event of [
    'cut',
    [409, 'outcome_unknown'],
    [409, 'answer_not_kept'],
    [422, 'idempotency_key_reused'],
  ] as const) {
    const { client, keys } = await scripted(t, [event])
    await failure(client.api(TRANSFER, { method: 'POST', idempotencyKey: true }))
    t.equal(keys.length, 1, String(event))
  }
})

await test('once() returns the answer, and asks nobody when it arrives', async (t) => {
  const { order, asked, keys } = await scripted(t, ['ok', 'ok'])
  t.equal((await order(false))?.status, 200)
  t.equal((await order(false))?.status, 200)
  t.same(asked, [])
  t.equal(new Set(keys).size, 2, 'every order has its own key')
})

await test('once() looks whether an order was made when no answer arrives, and repeats it with the same key if not', async (t) => {
  const made = await scripted(t, ['cut'])
  t.equal(await made.order(true), undefined)
  t.same(made.keys.length, 1)

  const lost = await scripted(t, ['cut', 'ok'])
  t.equal((await lost.order(false))?.status, 200)
  t.equal(lost.keys.length, 2)
  t.equal(new Set(lost.keys).size, 1)

  const twice = await scripted(t, ['cut', 'cut', 'ok'])
  t.match(await failure(twice.order(false)), { outcome: 'unknown' })
  t.equal(twice.keys.length, 2)
})

await test('once() repeats nothing that the server will not send, that was refused, or that has no key', async (t) => {
  const unknown = await scripted(t, [[409, 'outcome_unknown']])
  t.match(await failure(unknown.order(false)), { problem: { code: 'outcome_unknown' } })
  t.equal(unknown.keys.length, 1)
  t.same(unknown.asked, [false])

  const refused = await scripted(t, [[400, 'bad_request']])
  t.match(await failure(refused.order(false)), { status: 400 })
  t.same(refused.asked, [])

  let sent = 0
  const command = async (): Promise<never> => {
    sent++
    throw new SocketError('connection_lost', 'gone', { outcome: 'unknown' })
  }
  t.match(await failure(once(command, { isMade: () => false })), { code: 'connection_lost' })
  t.equal(await once(command, { isMade: () => true }), undefined)
  t.equal(sent, 2)
  const notSent = new SocketError('not_sent', 'not sent')
  t.equal(await failure(once(async () => Promise.reject(notSent), { isMade: () => true })), notSent)
})

await test('once() looks whether an order was made when its answer breaks off, and repeats it with the same key if not', async (t) => {
  const made = await scripted(t, ['cut in the body'])
  t.equal(await made.orderWhole(true), undefined)
  t.equal(made.keys.length, 1)

  const lost = await scripted(t, ['cut in the body', 'ok'])
  t.equal((await lost.orderWhole(false))?.status, 200)
  t.equal(lost.keys.length, 2)
  t.equal(new Set(lost.keys).size, 1)

  const twice = await scripted(t, ['cut in the body', 'cut in the body', 'ok'])
  const error = await failure(twice.orderWhole(false))
  t.ok(error instanceof ApiError)
  t.match(error, { outcome: 'unknown', status: 0, cause: TypeError })
  t.same(twice.asked, [false, false])
  t.equal(twice.keys.length, 2)
})

await test('once() says that the outcome is unknown when the repeated order gets a problem, which is not about the first', async (t) => {
  for (const [status, code] of [
    [409, 'idempotency_in_progress'],
    [503, 'session_store_unavailable'],
    [401, 'session_expired'],
    [429, 'rate_limited'],
  ] as const) {
    // A pause of six seconds is too long for the package, so the problem is final.
    const { order, asked, keys } = await scripted(t, ['cut', [status, code, '6'], 'ok'])
    t.match(await failure(order(false)), { status, problem: { code }, outcome: 'unknown' }, code)
    t.same(asked, [false, false], code)
    t.equal(keys.length, 2, code)
  }
})

await test('once() passes on that the repeated order was refused', async (t) => {
  const { order, asked } = await scripted(t, ['cut', [403, '']])
  t.match(await failure(order(false)), { status: 403, outcome: undefined })
  t.same(asked, [false])
})

await test('once() says that the outcome is unknown when isMade fails', async (t) => {
  const { client, keys } = await scripted(t, ['cut'])
  const fault = new Error('the list cannot be read')
  const order = (idempotencyKey: string) => client.api(TRANSFER, { method: 'POST', idempotencyKey })
  const error = await failure(once(order, { isMade: () => Promise.reject(fault) }))
  t.match(error, { outcome: 'unknown' })
  t.equal((error as ApiError).cause, fault)
  t.equal(keys.length, 1)
})

await test('once() and the server together send an order upstream once, although its response was lost', async (t) => {
  const { world, upstream } = await apiWorld(t)
  upstream.answer = (_request, socket) => void socket.write(ok('{"id":1}'))
  const { api } = pageClient(t, world.browser, world.server.url)
  let calls = 0
  const order = async (idempotencyKey: string) => {
    const response = await api(TRANSFER, { method: 'POST', json: {}, idempotencyKey })
    // The page never sees the first response.
    if (++calls === 1) throw new ApiError('POST', TRANSFER)
    return response
  }
  const response = await once(order, { isMade: () => false })
  t.equal(response?.headers.get('idempotency-replayed'), 'true')
  t.same(await response?.json(), { id: 1 })
  t.equal(upstream.requests.length, 1)
})
