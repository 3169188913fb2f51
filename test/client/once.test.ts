import { test, type Test } from 'tap'
import { ApiError, once, SocketError } from '../../client/dist/client.js'
import { apiWorld } from '../support/api-world.ts'
import { clientOf } from '../support/client-of.ts'
import { failure, pageClient } from '../support/page-client.ts'
import { ok } from '../support/raw-upstream.ts'

const TRANSFER = '/payment-agents/v1/transfer'

/** A server that does these things with the calls it gets, one after the other, and the keys of the calls. */
async function scripted(t: Test, script: readonly ('ok' | 'cut' | readonly [status: number, code: string])[]) {
  const left = [...script]
  const keys: (string | undefined)[] = []
  const client = await clientOf(t, ({ headers }, response) => {
    keys.push(headers['idempotency-key'] as string | undefined)
    const next = left.shift() ?? 'ok'
    if (next === 'cut') return void response.destroy()
    const [status, code] = next === 'ok' ? [200, ''] : next
    const outcome = code === 'outcome_unknown' ? 'unknown' : undefined
    response.writeHead(status, { 'content-type': 'application/problem+json', 'retry-after': '0' })
    response.end(JSON.stringify({ code, status, outcome }))
  })
  const asked: boolean[] = []
  const order = (isMade: boolean) =>
    once((idempotencyKey) => client.api(TRANSFER, { method: 'POST', json: {}, idempotencyKey }), {
      isMade: () => {
        asked.push(isMade)
        return isMade
      },
    })
  return { keys, asked, order, client }
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
  const fault = new TypeError('of the page')
  t.equal(await failure(once(async () => Promise.reject(fault), { isMade: () => true })), fault)
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
