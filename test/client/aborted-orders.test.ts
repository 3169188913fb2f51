import type { RequestListener, ServerResponse } from 'node:http'
import { test } from 'tap'
import { ApiError, once } from '../../client/dist/client.js'
import { clientOf } from '../support/client/client-of.ts'
import { OrderingBrowser } from '../support/client/ordering-browser.ts'
import { failure } from '../support/client/page-client.ts'
import { until } from '../support/time/until.ts'
import { exactly } from '../support/exactly.ts'
import { PROBLEM, problemBody } from '../support/client/own-problem.ts'

// In a process of its own: it gives the whole process a browser's storage.

const TRANSFER = '/payment-agents/v1/transfer'
const LEFT = new Error('left')
const ABORTED = { name: 'ApiError', code: 'aborted', outcome: 'unknown', status: 0, problem: undefined, cause: LEFT }
const SESSION = '{"authenticated":true,"now":1,"expires_at":3601,"idle_expires_at":601,"scope":"trade","session":"s"}'

/** Responds to orders, and counts them. */
function counting(respond: (response: ServerResponse, count: number) => void): {
  respond: RequestListener
  count: () => number
} {
  let count = 0
  return {
    respond: ({ url }, response) => {
      if (url === '/auth/session') return void response.end(SESSION)
      respond(response, ++count)
    },
    count: () => count,
  }
}

await test('an aborted POST or PATCH that may have left has an unknown outcome; a GET, and what was not sent, has the reason', async (t) => {
  for (const begin of [
    () => undefined,
    // The answer has begun, and is a problem.
    (response: ServerResponse) => response.writeHead(409, PROBLEM).write('{"co'),
  ]) {
    const { respond, count } = counting((response) => void begin(response))
    const { api } = await clientOf(t, respond)
    for (const method of ['POST', 'PATCH', 'GET'] as const) {
      const abort = new AbortController()
      const before = count()
      const call = failure(api(TRANSFER as never, { method: method as 'POST', signal: abort.signal }))
      await until(() => count() > before)
      abort.abort(LEFT)
      const error = await call
      if (method === 'GET') t.equal(error, LEFT)
      else t.match(error, { ...ABORTED, status: Number }, method)
      t.equal(error instanceof ApiError, method !== 'GET')
    }
    const sent = count()
    const never = api(TRANSFER, { method: 'POST', signal: AbortSignal.abort(LEFT) })
    t.equal(await failure(never), LEFT)
    t.equal(count(), sent)
  }
})

await test('a POST that is aborted before its repetition has the outcome of the attempt before', async (t) => {
  for (const [code, outcome] of [
    ['upstream_unreachable', undefined],
    ['idempotency_in_progress', 'unknown'],
  ] as const) {
    const abort = new AbortController()
    const { respond, count } = counting((response) => {
      response.writeHead(409, PROBLEM).end(problemBody(code, { status: 409 }))
      setTimeout(() => abort.abort(LEFT), 50)
    })
    const { api } = await clientOf(t, respond)
    const error = await failure(api(TRANSFER, { method: 'POST', idempotencyKey: true, signal: abort.signal }))
    t.equal(count(), 1)
    if (outcome === undefined) t.equal(error, LEFT)
    else t.match(error, ABORTED)
  }
})

await test('once(): an aborted order is not sent again, and its key is remembered', async (t) => {
  const abort = new AbortController()
  const { respond, count } = counting(() => abort.abort(LEFT))
  const { api } = await clientOf(t, respond)
  const asked: unknown[] = []
  const order = once((idempotencyKey) => api(TRANSFER, { method: 'POST', idempotencyKey, signal: abort.signal }), {
    isMade: (error) => asked.push(error) === 0,
  })
  t.match(await failure(order), ABORTED)
  t.match(asked, exactly(ABORTED))
  t.equal(count(), 1)

  const browser = await new OrderingBrowser().start(t)
  const leaving = new AbortController()
  browser.script = ['cut']
  browser.onCut = () => leaving.abort(LEFT)
  t.match(await failure(browser.order(undefined, undefined, leaving.signal)), ABORTED)
  t.equal(browser.tab.items.size, 1)
  await browser.order()
  t.equal(browser.keys.length, 2)
  t.equal(new Set(browser.keys).size, 1, 'the next click sends the same key')
})

await test('a key that an aborted call has not sent is new to the next call, and one whose outcome is unknown stays so', async (t) => {
  for (const [before, outcome] of [
    ['aborted', undefined],
    ['upstream_unreachable', undefined],
    ['cut', 'unknown'],
  ] as const) {
    let refusal = before as string
    const { respond } = counting((response) => {
      if (refusal === 'cut') return response.destroy()
      response.writeHead(503, PROBLEM).end(problemBody(refusal))
    })
    const { api } = await clientOf(t, respond)
    const call = (signal?: AbortSignal) => failure(api(TRANSFER, { method: 'POST', idempotencyKey: 'mine', signal }))
    if (before === 'cut') t.match(await call(), { outcome: 'unknown' })
    const leaving = new AbortController()
    if (before === 'upstream_unreachable') setTimeout(() => leaving.abort(LEFT), 100)
    else leaving.abort(LEFT)
    const error = await call(leaving.signal)
    if (before === 'cut') t.match(error, ABORTED)
    else t.equal(error, LEFT)
    refusal = 'rate_limited'
    t.match(await call(), { code: refusal, outcome }, before)
  }
})
