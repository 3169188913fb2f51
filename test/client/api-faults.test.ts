import type { RequestListener } from 'node:http'
import { test, type Test } from 'tap'
import { ApiError, once, type Client } from '../../client/dist/client.js'
import { clientOf } from '../support/client/client-of.ts'
import { PROBLEM, problemBody } from '../support/client/own-problem.ts'
import { failure } from '../support/client/page-client.ts'
import { timeAhead } from '../support/time/clock-ahead.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { until } from '../support/time/until.ts'

const TRANSFER = '/payment-agents/v1/transfer'

const SESSION = '{"authenticated":true,"now":1,"expires_at":3601,"idle_expires_at":601,"scope":"trade","session":"s"}'

/** Refuses everything but the question about the session. */
const refuse: RequestListener = ({ url }, response) => {
  if (url === '/auth/session') return void response.end(SESSION)
  response.writeHead(400, PROBLEM).end(problemBody('bad_request'))
}

/** A client of a server that has this session, responds like this to everything else, and counts that. */
async function countedClient(t: Test, respond: RequestListener): Promise<{ client: Client; requests: () => number }> {
  let requests = 0
  const client = await clientOf(t, (request, response) => {
    // The client asks in which session a call that is no GET is sent.
    if (request.url === '/auth/session') return void response.end(SESSION)
    requests++
    respond(request, response)
  })
  return { client, requests: () => requests }
}

await test('a call whose problem never arrives in full settles after timeoutMs, or when it is aborted', async (t) => {
  const { client, requests } = await countedClient(t, (_request, response) => {
    response.writeHead(502, PROBLEM).write('{"code":"upstream_')
  })
  t.match(await failure(client.api(TRANSFER, { method: 'POST', timeoutMs: 1000 })), {
    name: 'ApiError',
    status: 502,
    problem: undefined,
    outcome: 'unknown',
  })
  const abort = new AbortController()
  const aborted = client.api(TRANSFER, { method: 'POST', signal: abort.signal })
  await until(() => requests() === 2)
  setTimeout(() => abort.abort(new Error('left')), 50)
  t.match(await failure(aborted), { code: 'aborted', cause: { message: 'left' } })
})

await test('a call whose problem breaks off has an unknown outcome, whatever its status, and once() looks', async (t) => {
  const { client } = await countedClient(t, (_request, response) => {
    response.writeHead(409, { ...PROBLEM, 'content-length': 200 }).write('{"code":"outcome_un')
    setTimeout(() => response.destroy(), 20)
  })
  const unclear = { status: 409, problem: undefined, outcome: 'unknown' }
  t.match(await failure(client.api(TRANSFER, { method: 'POST' })), unclear)
  const order = (idempotencyKey: string): Promise<unknown> => client.api(TRANSFER, { method: 'POST', idempotencyKey })
  t.equal(await once(order, { isMade: () => true }), undefined)
  t.match(await failure(client.api('/v1/health')), { status: 409, outcome: undefined })
})

await test('a problem without a code comes from elsewhere, so it says nothing about the outcome', async (t) => {
  for (const body of ['{"status":502,"title":"Bad gateway"}', '{"code":502}', 'null', '[]', '"text"', '<html>']) {
    const { client, requests } = await countedClient(t, (_request, response) =>
      response.writeHead(502, PROBLEM).end(body),
    )
    t.match(await failure(client.api(TRANSFER, { method: 'POST' })), { problem: undefined, outcome: 'unknown' }, body)
    t.equal(requests(), 1)
  }
})

await test('retryAfter is a number of seconds or undefined, and a call is not repeated after a long pause', async (t) => {
  for (const [header, retryAfter] of [
    ['7', 7],
    ['86400', 86_400],
    ['-1', undefined],
    ['NaN', undefined],
    ['Infinity', undefined],
    ['0x10', undefined],
    ['1e9', undefined],
    ['', undefined],
    ['Wed, 21 Oct 2015 07:28:00 GMT', 0],
    ['Fri, 13', undefined],
  ] as const) {
    const { client } = await countedClient(t, (_request, response) => {
      response.writeHead(503, { ...PROBLEM, 'retry-after': header }).end(problemBody('session_store_unavailable'))
    })
    const error = (await failure(client.api(TRANSFER, { method: 'POST' }))) as ApiError
    t.equal(error.retryAfter, retryAfter, header)
  }
  // The clock of the user may be wrong: the date of the response counts. Three forms are allowed (RFC 9110 §5.6.7).
  for (const at of ['Sun, 06 Nov 2044 08:49:37 GMT', 'Sunday, 06-Nov-44 08:49:37 GMT', 'Sun Nov  6 08:49:37 2044']) {
    const { client } = await countedClient(t, (_request, response) => {
      const date = 'Sun, 06 Nov 2044 08:49:07 GMT'
      response.writeHead(503, { ...PROBLEM, date, 'retry-after': at }).end(problemBody('session_store_unavailable'))
    })
    t.match(await failure(client.api(TRANSFER, { method: 'POST' })), { retryAfter: 30 }, at)
  }
  const cross = new Response('', {
    status: 503,
    headers: { 'retry-after': new Date(Date.now() + 30_000).toUTCString() },
  })
  const { retryAfter = 0 } = new ApiError('GET', '/', cross)
  t.ok(retryAfter >= 29 && retryAfter <= 30, `${retryAfter}: another origin may not read the date`)
  const { client, requests } = await countedClient(t, (_request, response) => {
    response.writeHead(502, { ...PROBLEM, 'retry-after': '86400' }).end(problemBody('upstream_unreachable'))
  })
  t.match(await failure(client.api(TRANSFER, { method: 'POST' })), { problem: { code: 'upstream_unreachable' } })
  t.equal(requests(), 1)
})

await test('a POST is not repeated after the machine has slept for more than 20 seconds, and a GET is', async (t) => {
  const sleep = timeAhead(t)
  // The pause before the repetition is then half a second.
  t.intercept(Math, 'random', { value: () => 0 })
  for (const [method, sleptMs, sent] of [
    ['GET', 3_600_000, 2],
    ['POST', 15_000, 2],
    ['POST', 25_000, 1],
    ['POST', -25_000, 1],
  ] as const) {
    let asked = 0
    const { client, requests } = await countedClient(t, (_request, response) => {
      response.writeHead(502, PROBLEM).end(problemBody('upstream_unreachable'))
      // The machine sleeps during the pause, or its clock is set back.
      if (asked++ === 0) setTimeout(() => sleep(sleptMs), 200)
    })
    const call = method === 'GET' ? client.api('/v1/health') : client.api(TRANSFER, { method })
    t.match(await failure(call), { problem: { code: 'upstream_unreachable' }, outcome: undefined })
    t.equal(requests(), sent, `${method} after ${sleptMs} ms`)
  }
})

await test('a POST is not repeated if the machine slept before it read that nothing was executed, and a GET is', async (t) => {
  const sleep = timeAhead(t)
  t.intercept(Math, 'random', { value: () => 0 })
  for (const [method, timeoutMs, sleptMs, sent] of [
    ['GET', undefined, 3_600_000, 2],
    ['POST', undefined, 75_000, 2],
    ['POST', undefined, 85_000, 1],
    ['POST', 10_000, 35_000, 1],
  ] as const) {
    let asked = 0
    const { client, requests } = await countedClient(t, (_request, response) => {
      if (asked++ === 0) sleep(sleptMs)
      response.writeHead(502, PROBLEM).end(problemBody('upstream_unreachable'))
    })
    const call =
      method === 'GET' ? client.api('/v1/health', { timeoutMs }) : client.api(TRANSFER, { method, timeoutMs })
    t.match(await failure(call), { problem: { code: 'upstream_unreachable' }, outcome: undefined })
    t.equal(requests(), sent, `${method} after ${sleptMs} ms`)
  }
})

await test('a value that is no JSON is an error of the page, and nothing is sent', async (t) => {
  const { client, requests } = await countedClient(t, (_request, response) => response.end())
  t.match(await failure(client.api(TRANSFER, { method: 'POST', json: { data: 1n } as never })), { name: 'TypeError' })
  t.equal(requests(), 0)
})

await test('timeoutMs: Infinity does not end a call', async (t) => {
  const { client } = await countedClient(t, (_request, response) => void setTimeout(() => response.end(), 50))
  t.equal((await client.api(TRANSFER, { method: 'POST', timeoutMs: Infinity })).status, 200)
})

await test('without timeoutMs a call ends after a minute', async (t) => {
  const minute = new HeldTimers(t, 'setTimeout', 60_000)
  const { client } = await countedClient(t, () => minute.run())
  t.match(await failure(client.api(TRANSFER, { method: 'POST' })), { status: 0, outcome: 'unknown' })
  t.equal(minute.size, 0)
})

await test('the answer of a running call is asked for 45 times, and once more as after any call that was not executed', async (t) => {
  const pauses = new HeldTimers(t, 'setTimeout', 500)
  t.intercept(Math, 'random', { value: () => 0 })
  const { client, requests } = await countedClient(t, (_request, response) => {
    response.writeHead(409, PROBLEM).end(problemBody('idempotency_in_progress'))
  })
  let isOver = false
  const error = failure(client.api(TRANSFER, { method: 'POST', idempotencyKey: true })).finally(() => (isOver = true))
  await until(() => {
    pauses.run()
    return isOver
  })
  t.match(await error, { code: 'idempotency_in_progress', outcome: 'unknown' })
  t.equal(requests(), 1 + 45 + 1)
})

await test('while a server responds with garbage, logout() and extend() reject and the session is not lost', async (t) => {
  let garbage = ''
  const client = await clientOf(t, ({ url }, response) => {
    if (garbage !== '') return void response.writeHead(502, { 'content-type': 'text/html' }).end(garbage)
    const now = Math.floor(Date.now() / 1000)
    const times = { now, expires_at: now + 3600, idle_expires_at: now + 3600 }
    response.end(
      url === '/auth/session' ? JSON.stringify({ authenticated: true, scope: '', session: 's', ...times }) : '',
    )
  })
  await client.session.check()
  garbage = '<html>'
  t.match(await failure(client.logout()), { status: 502, outcome: 'unknown' })
  t.match(await failure(client.session.extend()), { status: 502, outcome: 'unknown' })
  t.equal(client.session.get().status, 'active')
})

await test('a problem is one by its type alone, and a response of any other type is none', async (t) => {
  const body = problemBody('bad_request')
  for (const [type, code] of [
    ['application/problem+json; charset=utf-8', 'bad_request'],
    ['application/json', undefined],
    ['text/html; for=application/problem+json', undefined],
    [undefined, undefined],
  ] as const) {
    const { client } = await countedClient(t, (_request, response) => {
      response.writeHead(400, { 'x-request-id': 'own', ...(type && { 'content-type': type }) }).end(body)
    })
    const error = (await failure(client.api(TRANSFER, { method: 'POST' }))) as ApiError
    t.match(error, { status: 400, code, outcome: undefined, cause: undefined }, type ?? 'no type')
    t.equal(await error.response?.text(), body, 'the page may read it')
  }
  const { client } = await countedClient(t, (_request, response) => response.writeHead(403, PROBLEM).end('null'))
  t.match(await failure(client.api(TRANSFER, { method: 'POST' })), { problem: undefined, outcome: undefined })
})

await test('a response without a change is a response', async (t) => {
  const { client } = await countedClient(t, (_request, response) => response.writeHead(304).end())
  t.equal((await client.api('/v1/health', { cache: 'no-store' })).status, 304)
})

await test('a problem that has arrived whole counts, although the call was aborted then', async (t) => {
  const abort = new AbortController()
  const whole = async (url: string, init: RequestInit): Promise<Response> => {
    const response = await fetch(url, init)
    const body = await response.text()
    if (!url.endsWith('/auth/session')) abort.abort(new Error('left'))
    return new Response(body, response)
  }
  const { api } = await clientOf(t, refuse, { fetch: whole })
  for (const method of ['POST', 'PATCH'] as const) {
    const call = api(TRANSFER as never, { method: method as 'POST', signal: abort.signal })
    t.match(await failure(call), method === 'POST' ? { code: 'bad_request', outcome: undefined } : { message: 'left' })
  }
})
