import type { ServerResponse } from 'node:http'
import { test, type Test } from 'tap'
import { once, type ApiError, type Client } from '../../client/dist/client.js'
import { clientOf } from '../support/client/client-of.ts'
import { PROBLEM } from '../support/client/own-problem.ts'
import { failure } from '../support/client/page-client.ts'

const TRANSFER = '/payment-agents/v1/transfer'
const SESSION = '{"authenticated":true,"now":1,"expires_at":3601,"idle_expires_at":601,"scope":"trade","session":"s"}'

/** A client of a server that answers like this to calls, and how many there were. */
async function answeringClient(
  t: Test,
  answer: (response: ServerResponse) => unknown,
): Promise<{ client: Client; requests: () => number }> {
  let requests = 0
  const client = await clientOf(t, ({ url }, response) => {
    if (url === '/auth/session') return void response.end(SESSION)
    requests++
    answer(response)
  })
  return { client, requests: () => requests }
}

await test('a problem of a proxy or of the trading service is none of the server, whatever its code', async (t) => {
  const id = { 'x-request-id': 'own' }
  const type = { 'content-type': 'application/problem+json' }
  const foreign = '{"type":"about:blank","status":504,"code":"orders_paused"}'
  for (const [status, headers, body, outcome] of [
    [504, type, '{"type":"about:blank","status":504,"code":"GATEWAY_TIMEOUT"}', 'unknown'],
    [504, type, foreign, 'unknown'],
    [504, { ...type, ...id }, foreign, 'unknown'],
    [503, { ...type, ...id }, '{"type":"/problems/idempotency_in_progress","code":"orders_paused"}', 'unknown'],
    [400, { ...type, ...id }, foreign, undefined],
  ] as const) {
    const { client, requests } = await answeringClient(t, (response) => response.writeHead(status, headers).end(body))
    const call = `${status} ${Object.keys(headers).join(' ')} ${body}`
    const error = (await failure(client.api(TRANSFER, { method: 'POST' }))) as ApiError
    t.match(error, { status, problem: undefined, code: undefined, outcome, cause: undefined }, call)
    t.equal(await error.response?.text(), body, 'the page may read it')
    let asked = 0
    const order = (idempotencyKey: string): Promise<unknown> => client.api(TRANSFER, { method: 'POST', idempotencyKey })
    const made = once(order, { isMade: () => ++asked > 0 })
    if (outcome === 'unknown') t.equal(await made, undefined, 'once() looks')
    else t.match(await failure(made), { status, outcome: undefined })
    t.equal(asked, outcome === 'unknown' ? 1 : 0)
    t.equal(requests(), 2)
  }
})

await test('a refusal of the trading service is the last word on a key, also as a problem with a code', async (t) => {
  const body = '{"type":"about:blank","code":"upstream_unreachable"}'
  const { client, requests } = await answeringClient(t, (response) => {
    if (requests() === 1) response.destroy()
    else response.writeHead(400, PROBLEM).end(body)
  })
  const call = (): Promise<unknown> => client.api(TRANSFER, { method: 'POST', idempotencyKey: 'one' })
  t.match(await failure(call()), { status: 0, outcome: 'unknown' })
  t.match(await failure(call()), { status: 400, problem: undefined, outcome: undefined })
  t.equal(requests(), 2)
})
