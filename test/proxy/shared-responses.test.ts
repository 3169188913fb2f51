import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { test } from 'tap'
import { testServer } from '../support/server/test-server.ts'
import { clockAhead } from '../support/time/clock-ahead.ts'
import { until, within } from '../support/time/until.ts'
import { ok } from '../support/upstream/raw-upstream.ts'
import { sendTo } from '../support/user.ts'
import { startWorld, API } from '../support/world.ts'

/** Then no response is recent any more. */
const LONG_AGO_MS = 120_000
const HEALTH = '/api/v1/health'
const ask = (port: number) => sendTo(port, 'GET', HEALTH, { headers: { 'x-csrf': '1' } })

await test('GET /api/v1/health asks upstream once for any number of callers', async (t) => {
  const { send, upstream, server } = await startWorld(t, { ...API, settings: { HEALTH_SECONDS: '3' } })
  const headers = { 'x-csrf': '1' }
  upstream.answer = (_request, socket) =>
    void socket.write('HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX-Brand: x\r\nContent-Length: 2\r\n\r\nOK')
  const crowd = await Promise.all(
    Array.from({ length: 50 }, (_none, index) => send('GET', `${HEALTH}?busting=${index}`, { headers })),
  )
  for (const response of crowd) {
    t.equal(response.status, 200)
    t.equal(response.text, 'OK')
    t.match(response.headers, { 'content-type': 'text/plain', 'cache-control': 'no-store' })
    t.equal(response.headers['x-brand'], undefined)
  }
  t.equal(
    new Set(crowd.map((response) => response.headers['x-request-id'])).size,
    50,
    'each response has its own request id',
  )
  t.equal(upstream.requests.length, 1)
  t.equal(upstream.requests[0]?.target, '/v1/health')
  t.equal((await send('GET', `${HEALTH}?a=\u00e9`, { headers })).status, 400, 'a bad query is refused all the same')

  await sleep(3010)
  upstream.answer = (_request, socket) => void socket.write(ok('{"later":1}'))
  t.equal((await send('GET', HEALTH, { headers })).text, '{"later":1}', 'upstream is asked again after that time')
  t.equal(upstream.requests.length, 2)
  t.equal(server.log.filter(({ level }) => level === 50).length, 0)
})

await test('callers share a failure of GET /api/v1/health too', async (t) => {
  for (const [name, status, code, times] of [
    ['503 secret', 503, 'upstream_error', 1],
    ['302 secret', 502, 'upstream_error', 1],
    ['reset', 502, 'upstream_lost', 2],
  ] as const) {
    const { send, upstream } = await startWorld(t, API)
    upstream.answer = (_request, socket) => {
      if (name === 'reset') socket.resetAndDestroy()
      else socket.write(`HTTP/1.1 ${name}\r\nRetry-After: 7\r\nLocation: /x\r\nContent-Length: 6\r\n\r\nsecret`)
    }
    const crowd = await Promise.all(
      Array.from({ length: 10 }, () => send('GET', HEALTH, { headers: { 'x-csrf': '1' } })),
    )
    for (const response of crowd) {
      t.equal(response.status, status, name)
      t.equal(response.headers['retry-after'], status === 503 ? '7' : undefined)
      t.match(response.json, { code, request_id: response.headers['x-request-id'] })
      t.notMatch(response.text, 'secret')
      t.equal(response.json['outcome'], undefined)
    }
    t.equal(upstream.requests.length, times)
  }
  const { send, upstream } = await startWorld(t, API)
  upstream.answer = (_request, socket) => void socket.write(ok('x'.repeat(70_000)))
  t.equal((await send('GET', HEALTH, { headers: { 'x-csrf': '1' } })).status, 502, 'a response of 70 KB is not shared')
})

await test('like any GET, it is sent once more after a connection that failed before any response', async (t) => {
  const { send, upstream } = await startWorld(t, API)
  const headers = { 'x-csrf': '1' }
  upstream.answer = (_request, socket) => {
    if (upstream.requests.length === 1) socket.resetAndDestroy()
    else socket.write(ok('{"second":1}'))
  }
  const { status, text } = await send('GET', HEALTH, { headers })
  t.match({ status, text }, { status: 200, text: '{"second":1}' })
  t.equal(upstream.requests.length, 2)

  const other = await startWorld(t, API)
  other.upstream.answer = (_request, socket) => {
    socket.write('HTTP/1.1 200 OK\r\nContent-Len')
    setTimeout(() => socket.resetAndDestroy(), 50)
  }
  t.equal((await other.send('GET', HEALTH, { headers })).status, 502, 'a response had begun')
  t.equal(other.upstream.requests.length, 1)
})

await test('a second try without a response ends as upstream_timeout', async (t) => {
  const { send, upstream } = await startWorld(t, { ...API, settings: { UPSTREAM_HEADERS_SECONDS: '1' } })
  upstream.answer = (_request, socket) => {
    if (upstream.requests.length === 1) socket.resetAndDestroy()
  }
  const response = await send('GET', HEALTH, { headers: { 'x-csrf': '1' } })
  t.match(response.json, { code: 'upstream_timeout' })
  t.equal(upstream.requests.length, 2)
})

await test('a second try has only the time that the first has left', async (t) => {
  const more = { UPSTREAM_HEADERS_SECONDS: '2' }
  const { server, upstream, settings } = await startWorld(t, { ...API, settings: more })
  const other = await testServer(t, { ...settings, PUBLIC_URL: server.url })
  const asked: Socket[] = []
  upstream.answer = (_request, socket) => void asked.push(socket)
  const over: string[] = []
  const tried = ask(server.port).then(() => over.push('tried twice'))
  await until(() => asked.length === 1)
  await sleep(300)
  // It has just as much time, for one try.
  const begunLater = ask(other.port).then(() => over.push('begun later'))
  await until(() => asked.length === 2)
  await sleep(300)
  asked[0]?.resetAndDestroy()
  await Promise.all([tried, begunLater])
  t.same(over, ['tried twice', 'begun later'])
  t.equal(asked.length, 3)
})

await test('too many callers that wait for the same response get 429', async (t) => {
  const { send, upstream } = await startWorld(t, API)
  const asked = new Promise<Socket>((resolve) => {
    upstream.answer = (_request, socket) => resolve(socket)
  })
  const headers = { 'x-csrf': '1' }
  const crowd = [send('GET', HEALTH, { headers })]
  const socket = await within(asked, 'upstream is asked')
  const statuses: number[] = []
  for (let count = 1; count < 600; count++) {
    const response = send('GET', HEALTH, { headers })
    void response.then(({ status }) => statuses.push(status))
    crowd.push(response)
  }
  // These wait beside the call that asks upstream.
  while (statuses.length < 600 - 513) await sleep(5)
  t.same(new Set(statuses), new Set([429]), 'a caller too many gets 429 at once')
  socket.write(ok('{"late":1}'))
  const responses = await Promise.all(crowd)
  t.equal(responses.filter(({ status }) => status === 200).length, 513)
  t.equal((await send('GET', HEALTH, { headers })).text, '{"late":1}')
  t.equal(upstream.requests.length, 1)
  upstream.answer = (_request, next) => void setTimeout(() => next.write(ok('{"later":1}')), 300)
  clockAhead(t)(LONG_AGO_MS)
  const later = await Promise.all(Array.from({ length: 100 }, () => send('GET', HEALTH, { headers })))
  t.same(new Set(later.map(({ text }) => text)), new Set(['{"later":1}']), 'permits are released')
})
