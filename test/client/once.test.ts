import { test, type Test } from 'tap'
import { ApiError, once, SocketError } from '../../client/dist/client.js'
import { failure, pageClient } from '../support/client/page-client.ts'
import { scriptedClient, type Event } from '../support/client/scripted-client.ts'
import { ok } from '../support/upstream/raw-upstream.ts'
import { startWorld, API } from '../support/world.ts'

const TRANSFER = '/payment-agents/v1/transfer'

/** Orders at a server that does this with its calls, one after the other, and whether `isMade` was asked. */
async function scripted(t: Test, ...script: readonly Event[]) {
  const { client, calls } = await scriptedClient(t, ...script)
  const asked: boolean[] = []
  const send = (idempotencyKey: string) => client.api(TRANSFER, { method: 'POST', body: '{}', idempotencyKey })
  /** Makes an order and reads the body of its answer. */
  const order = (isMade: boolean) =>
    once(
      async (key) => {
        const response = await send(key)
        await response.clone().text()
        return response
      },
      {
        isMade: () => {
          asked.push(isMade)
          return isMade
        },
      },
    )
  const keys = (): unknown[] => calls.map(({ key }) => key)
  return { keys, asked, order, client }
}

await test('with a key, a call is repeated while the first is in progress, and when nothing was sent', async (t) => {
  const script = [
    [409, 'idempotency_in_progress'],
    [503, 'session_store_unavailable'],
  ] as const
  const { client, keys } = await scripted(t, ...script)
  t.equal((await client.api(TRANSFER, { method: 'POST', body: '{}', idempotencyKey: true })).status, 200)
  t.equal(keys().length, 3)
  t.equal(new Set(keys()).size, 1)
  const twice = await scripted(t, script[1], script[1])
  t.match(await failure(twice.client.api(TRANSFER, { method: 'POST', idempotencyKey: 'mine' })), { status: 503 })
  t.same(twice.keys(), ['mine', 'mine'])
})

await test('with a key, a call whose outcome is unknown is not repeated', async (t) => {
  for (const event of [
    'cut',
    [409, 'outcome_unknown'],
    [409, 'answer_not_kept'],
    [422, 'idempotency_key_reused'],
  ] as const) {
    const { client, keys } = await scripted(t, event)
    await failure(client.api(TRANSFER, { method: 'POST', idempotencyKey: true }))
    t.equal(keys().length, 1, String(event))
  }
})

await test('once() returns the answer, and does not ask whether the order was made', async (t) => {
  const { order, asked, keys } = await scripted(t)
  t.equal((await order(false))?.status, 200)
  t.equal((await order(false))?.status, 200)
  t.same(asked, [])
  t.equal(new Set(keys()).size, 2, 'every order has its own key')
})

for (const [event, when] of [
  ['cut', 'no answer arrives'],
  ['cut in the body', 'its answer breaks off'],
] as const) {
  await test(`once() looks whether an order was made when ${when}, and repeats it with the same key if not`, async (t) => {
    const made = await scripted(t, event)
    t.equal(await made.order(true), undefined)
    t.equal(made.keys().length, 1)

    const lost = await scripted(t, event)
    t.equal((await lost.order(false))?.status, 200)
    t.equal(lost.keys().length, 2)
    t.equal(new Set(lost.keys()).size, 1)

    const twice = await scripted(t, event, event)
    const error = await failure(twice.order(false))
    t.ok(error instanceof ApiError)
    t.match(error, { outcome: 'unknown', status: 0, cause: TypeError })
    t.same(twice.asked, [false, false])
    t.equal(twice.keys().length, 2)
  })
}

await test('once() repeats nothing that the server will not send, that was refused, or that has no key', async (t) => {
  const unknown = await scripted(t, [409, 'outcome_unknown'])
  t.match(await failure(unknown.order(false)), { problem: { code: 'outcome_unknown' } })
  t.equal(unknown.keys().length, 1)
  t.same(unknown.asked, [false])

  const refused = await scripted(t, [400, 'bad_request'])
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

await test('once() says that the outcome is unknown when the repeated order gets a problem, which is not about the first', async (t) => {
  for (const [status, code] of [
    [409, 'idempotency_in_progress'],
    [503, 'session_store_unavailable'],
    [401, 'session_expired'],
    [429, 'rate_limited'],
  ] as const) {
    // A pause of six seconds is too long for the package, so the problem is final.
    const { order, asked, keys } = await scripted(t, 'cut', [status, code, '6'])
    t.match(await failure(order(false)), { status, problem: { code }, outcome: 'unknown' }, code)
    t.same(asked, [false, false], code)
    t.equal(keys().length, 2, code)
  }
})

await test('once() passes on that the repeated order was refused', async (t) => {
  const { order, asked } = await scripted(t, 'cut', [403, ''])
  t.match(await failure(order(false)), { status: 403, outcome: undefined })
  t.same(asked, [false])
})

await test('once() says that the outcome is unknown when a proxy refuses the repeated order, of which it knows nothing', async (t) => {
  const { order, asked, keys } = await scripted(t, 'cut', 'refused by a proxy')
  t.match(await failure(order(false)), { status: 403, problem: undefined, outcome: 'unknown' })
  t.same(asked, [false, false])
  t.equal(keys().length, 2)
  const first = await scripted(t, 'refused by a proxy')
  t.match(
    await failure(first.order(false)),
    { status: 403, outcome: undefined },
    'it has not let the first one through',
  )
  t.same(first.asked, [])
})

await test('an order that a proxy redirects has an unknown outcome, and a GET follows the redirect', async (t) => {
  const { order, asked, keys, client } = await scripted(t, 'redirected by a proxy', 'redirected by a proxy')
  const error = await failure(order(false))
  t.ok(error instanceof ApiError)
  t.match(error, { problem: undefined, outcome: 'unknown' })
  t.same(asked, [false, false])
  t.equal(new Set(keys()).size, 1)
  t.equal(keys().length, 2)
  const logout = await scripted(t, 'redirected by a proxy')
  t.ok((await failure(logout.client.logout())) instanceof ApiError, 'the user is still logged in')
  const reading = await scripted(t, 'redirected by a proxy')
  t.equal(await (await reading.client.api('/v1/health')).text(), '<form>')
  t.equal((await client.api(TRANSFER, { method: 'POST', body: '{}' })).status, 200)
})

await test('once() says that the outcome is unknown when isMade fails', async (t) => {
  const { client, keys } = await scripted(t, 'cut')
  const fault = new Error('the list cannot be read')
  const order = (idempotencyKey: string) => client.api(TRANSFER, { method: 'POST', idempotencyKey })
  const error = await failure(once(order, { isMade: () => Promise.reject(fault) }))
  t.match(error, { outcome: 'unknown' })
  t.equal((error as ApiError).cause, fault)
  t.equal(keys().length, 1)
})

await test('once() and the server together: the refusal of the trading service is the last word, also when it comes again', async (t) => {
  const { upstream, browser, server } = await startWorld(t, API)
  const refusal = '{"errors":["too much"]}'
  const head = `HTTP/1.1 422 No\r\nContent-Type: application/json\r\nContent-Length: ${refusal.length}\r\n\r\n`
  upstream.answer = (_request, socket) => void socket.write(head + refusal)
  const { api } = pageClient(t, browser, server.url)
  let calls = 0
  const order = async (idempotencyKey: string) => {
    const response = api(TRANSFER, { method: 'POST', body: '{}', idempotencyKey })
    // The page never sees the first response.
    if (++calls === 1) throw new ApiError('POST', TRANSFER, undefined, undefined, await failure(response))
    return response
  }
  const error = await failure(once(order, { isMade: () => false }))
  t.match(error, { status: 422, problem: undefined, outcome: undefined })
  t.equal((error as ApiError).response?.headers.get('idempotency-replayed'), 'true')
  t.equal(upstream.requests.length, 1)
})

await test('once() and the server together send an order upstream once, although its response was lost', async (t) => {
  const { upstream, browser, server } = await startWorld(t, API)
  upstream.answer = (_request, socket) => void socket.write(ok('{"id":1}'))
  const { api } = pageClient(t, browser, server.url)
  let calls = 0
  const order = async (idempotencyKey: string) => {
    const response = await api(TRANSFER, { method: 'POST', body: '{}', idempotencyKey })
    // The page never sees the first response.
    if (++calls === 1) throw new ApiError('POST', TRANSFER)
    return response
  }
  const response = await once(order, { isMade: () => false })
  t.equal(response?.headers.get('idempotency-replayed'), 'true')
  t.same(await response?.json(), { id: 1 })
  t.equal(upstream.requests.length, 1)
})
