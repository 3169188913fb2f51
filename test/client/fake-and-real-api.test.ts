import { test, type Test } from 'tap'
import { ApiError, once } from '../../client/dist/client.js'
import { KINDS, type DrivenClient } from '../support/client/driven-client.ts'
import { failure } from '../support/client/page-client.ts'
import { exactly } from '../support/exactly.ts'

const ACCOUNTS = '/trading/v1/options/accounts'
const TRANSFER = '/payment-agents/v1/transfer'
const ORDER = { method: 'POST', json: { data: { to_nickname: 'ann', amount: '1', currency: 'USD' } } } as const

for (const [kind, start] of KINDS) {
  const loggedIn = async (t: Test): Promise<DrivenClient> => {
    const world = await start(t)
    await world.server.logIn()
    return world
  }

  await test(`${kind}: a call resolves with the response of the trading service, whatever its query is`, async (t) => {
    const { client, server } = await loggedIn(t)
    server.respond('GET', ACCOUNTS, { data: [{ account_id: 'VRTC100' }] })
    const response = await client.api(`${ACCOUNTS}?page=2`)
    t.equal(response.status, 200)
    t.same(await response.json(), { data: [{ account_id: 'VRTC100' }] })
    t.match(server.calls, exactly({ method: 'GET', path: `${ACCOUNTS}?page=2`, json: undefined }))
  })

  await test(`${kind}: the trading service gets the JSON of a call, and its refusal has a status and no problem`, async (t) => {
    const { client, server } = await loggedIn(t)
    server.respond('POST', TRANSFER, Response.json({ errors: ['too much'] }, { status: 400 }))
    const error = await failure(client.api(TRANSFER, ORDER))
    t.match(error, { name: 'ApiError', status: 400, problem: undefined, outcome: undefined })
    t.same(await (error as { response: Response }).response.json(), { errors: ['too much'] })
    const again = (await failure(client.api(TRANSFER, ORDER))) as { response: Response }
    t.same(await again.response.json(), { errors: ['too much'] })
    const call = { method: 'POST', path: TRANSFER, json: ORDER.json }
    t.match(server.calls, exactly(call, call))
  })

  await test(`${kind}: a lost response leaves the outcome of an order unknown, and that of a GET not`, async (t) => {
    const { client, server } = await loggedIn(t)
    server.respond('POST', TRANSFER, Response.error())
    server.respond('GET', ACCOUNTS, Response.error())
    const lost = { status: 0, code: undefined, response: undefined }
    const error = await failure(client.api(TRANSFER, ORDER))
    t.ok(error instanceof ApiError)
    t.match(error, { ...lost, outcome: 'unknown' })
    t.match(await failure(client.api(ACCOUNTS)), { ...lost, outcome: undefined })
    t.equal(server.calls.length, 2, 'nothing is sent again')
  })

  await test(`${kind}: once() asks what became of an order whose answer is lost`, async (t) => {
    const { client, server } = await loggedIn(t)
    server.respond('POST', TRANSFER, Response.error())
    let asked = 0
    const order = once((idempotencyKey) => client.api(TRANSFER, { ...ORDER, idempotencyKey }), {
      isMade: () => ++asked > 0,
    })
    t.equal(await order, undefined)
    t.same([asked, server.calls.length], [1, 1])
  })

  await test(`${kind}: offline, an order is not_sent and a GET fails; both work again afterwards`, async (t) => {
    const { client, server } = await loggedIn(t)
    server.setNetwork('offline')
    t.match(await failure(client.api(TRANSFER, ORDER)), { code: 'not_sent', status: 0, outcome: undefined })
    t.match(await failure(client.api(ACCOUNTS)), { status: 0, outcome: undefined })
    t.equal(server.calls.length, 0)
    server.setNetwork('up')
    server.respond('POST', TRANSFER, { data: {} })
    t.equal((await client.api(TRANSFER, ORDER)).status, 200)
  })

  await test(`${kind}: an aborted call rejects with the reason of its signal`, async (t) => {
    const { client, server } = await loggedIn(t)
    server.respond('GET', ACCOUNTS, { data: [] })
    const reason = new Error('no longer wanted')
    t.equal(await failure(client.api(ACCOUNTS, { signal: AbortSignal.abort(reason) })), reason)
    const abort = new AbortController()
    const call = client.api(ACCOUNTS, { signal: abort.signal })
    abort.abort(reason)
    t.equal(await failure(call), reason)
    const order = client.api(TRANSFER, { ...ORDER, signal: AbortSignal.abort(reason) })
    t.equal(await failure(order), reason)
    t.notOk(
      server.calls.some(({ method }) => method === 'POST'),
      'not sent',
    )
  })

  await test(`${kind}: an order that is aborted after it may have left has an unknown outcome`, async (t) => {
    const { client, server } = await loggedIn(t)
    server.respond('POST', TRANSFER, { data: {} })
    const abort = new AbortController()
    const order = client.api(TRANSFER, { ...ORDER, signal: abort.signal })
    abort.abort('left')
    t.match(await failure(order), { name: 'ApiError', code: 'aborted', outcome: 'unknown', cause: 'left' })
  })

  await test(`${kind}: once() does not repeat a call that has forgotten its key`, async (t) => {
    const { client, server } = await loggedIn(t)
    server.respond('POST', TRANSFER, Response.error())
    const order = once(async (_key) => client.api(TRANSFER, { ...ORDER, idempotencyKey: true }), {
      isMade: () => false,
    })
    t.match(await failure(order), { outcome: 'unknown', detail: /idempotencyKey/ })
    t.equal(server.calls.length, 1)
  })

  await test(`${kind}: an id beyond 2^53 stays what it is, in answers and in bodies`, async (t) => {
    const { client, server } = await loggedIn(t)
    const agent_id = '9007199254740993'
    const path = '/payment-agents/v1/withdraw/verification_code'
    server.respond('POST', path, { data: { agent_id } })
    const data = { agent_id, amount: '1', currency: 'USD' }
    t.match(await (await client.api(path, { method: 'POST', json: { data } })).json(), { data: { agent_id } })
    t.same(
      server.calls.map(({ json }) => json),
      [{ data }],
    )
  })
}
