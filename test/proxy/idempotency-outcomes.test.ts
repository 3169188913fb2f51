import type { Socket } from 'node:net'
import { promisify } from 'node:util'
import { test } from 'tap'
import { freePort } from '../../sandbox/listening.ts'
import { codeOf, keyedWorld } from '../support/idempotency/keyed-world.ts'
import { TRANSFER } from '../support/user.ts'
import { ok } from '../support/upstream/raw-upstream.ts'
import { until, within } from '../support/time/until.ts'
import { exactly } from '../support/exactly.ts'

const write = (text: string) => (socket: Socket) => void socket.write(text)
const status = (line: string) => write(`HTTP/1.1 ${line}\r\nContent-Length: 2\r\n\r\n{}`)

/** What upstream does after which nobody knows whether the call was executed. The first response says which problem. */
const UNKNOWN: Readonly<Record<string, readonly [code: string, respond: (socket: Socket) => void]>> = {
  'a reset': ['upstream_lost', (socket) => socket.resetAndDestroy()],
  'a close': ['upstream_lost', (socket) => socket.end()],
  'a 500': ['upstream_error', status('500 Oops')],
  'a 503': ['upstream_error', status('503 Busy')],
  'a redirect': ['upstream_error', write('HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n')],
  silence: ['upstream_timeout', () => undefined],
  'half a body': ['upstream_lost', (socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf')],
  'half a chunked body': [
    'upstream_lost',
    (socket) => socket.end('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n'),
  ],
}

const hasLeft = ({ audit }: Record<string, unknown>): boolean => audit === 'browser_left'

await test('What upstream did decides what becomes of an Idempotency-Key', async (t) => {
  const world = await keyedWorld(t, { UPSTREAM_HEADERS_SECONDS: '1' })
  const { upstream, order, other, instance, abandon } = world

  for (const [name, [code, respond]] of Object.entries(UNKNOWN)) {
    await t.test(`after ${name} the outcome is unknown, and the key is never sent again`, async (t) => {
      upstream.reset()
      upstream.answer = (_request, socket) => respond(socket)
      t.match((await order({ key: name })).json, { code, outcome: 'unknown' })
      upstream.answer = (_request, socket) => void socket.write(ok())
      for (const at of [world.server, other]) {
        const again = await order({ key: name, at })
        t.equal(again.status, 409)
        t.match(again.json, { code: 'outcome_unknown', outcome: 'unknown' })
      }
      t.equal(upstream.requests.length, 1)
      const lines = world.server.log.filter(({ audit }) => audit === 'idempotency')
      t.match(lines.at(-1), { outcome: 'repeated_unknown', method: 'POST', session: /[\w-]{10}/ })
    })
  }

  for (const [line, code] of [
    ['429 Slow down', 'rate_limited'],
    ['413 Too large', 'body_too_large'],
  ] as const) {
    await t.test(`after a ${line} of upstream the key is free again, for any call`, async (t) => {
      upstream.reset()
      upstream.answer = (_request, socket) => status(line)(socket)
      for (const count of [1, 2]) {
        t.equal((await order({ key: line })).status, Number.parseInt(line, 10))
        t.equal(upstream.requests.length, count)
      }
      const half = `HTTP/1.1 ${line}\r\nRetry-After: 7\r\nContent-Length: 9\r\n\r\nhalf`
      upstream.answer = (_request, socket) => void socket.end(half)
      const brokenOff = await order({ key: line })
      t.equal(brokenOff.status, Number.parseInt(line, 10))
      t.equal(brokenOff.headers['retry-after'], '7')
      t.match(brokenOff.json, { code, outcome: undefined })
      upstream.answer = (_request, socket) => void socket.end(half.replace('Retry-After: 7\r\n', ''))
      const expected = code === 'rate_limited' ? '1' : undefined
      t.equal((await order({ key: line })).headers['retry-after'], expected, 'each 429 of this server says when')
      upstream.answer = (_request, socket) => void socket.write(ok())
      t.equal((await order({ key: line, at: other, body: 'another' })).status, 200)
      t.equal(upstream.requests.length, 5)
    })
  }

  await t.test('a browser that leaves while it gets a large 429 leaves a free key behind', async (t) => {
    upstream.reset()
    const small = await instance({ IDEMPOTENCY_MAX_ANSWER_BYTES: '10' })
    const half = 'x'.repeat(500)
    upstream.answer = (_request, socket) =>
      void socket.write(`HTTP/1.1 429 Slow down\r\nContent-Length: 1000\r\n\r\n${half}`)
    const abort = new AbortController()
    const headers = { cookie: world.cookie, 'x-csrf': '1', 'idempotency-key': 'left' }
    const url = `http://127.0.0.1:${small.port}${TRANSFER}`
    const response = await fetch(url, { method: 'POST', headers, body: '{}', signal: abort.signal })
    t.equal(response.status, 429)
    t.equal(codeOf(await order({ key: 'left', at: other, body: '{}' })), 'idempotency_in_progress')
    abort.abort()
    // Either end may be noticed first.
    for (const socket of upstream.open) socket.destroy()
    upstream.answer = (_request, socket) => void socket.write(ok())
    await until(async () => (await order({ key: 'left', at: other, body: '{}' })).status === 200)
    t.equal(upstream.requests.length, 2)
  })

  await t.test('a browser that leaves before a large response begins does not stop the call', async (t) => {
    upstream.reset()
    const small = await instance({ IDEMPOTENCY_MAX_ANSWER_BYTES: '10' })
    const connections = promisify(small.app.server.server.getConnections.bind(small.app.server.server))
    const upstreamSocket = await abandon('large', small)
    await until(async () => (await connections()) === 0, 'the server knows that the browser has left')
    upstreamSocket.write(`HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n${'x'.repeat(500)}`)
    await until(
      async () => codeOf(await order({ key: 'large', at: other })) === 'answer_not_kept',
      'the response has begun',
    )
    upstreamSocket.write('x'.repeat(500))
    await until(() => small.log.some(hasLeft), 'the call is finished')
    t.match(small.log.filter(hasLeft), exactly({ status: 200, sent: 'whole' }))
    t.equal(upstream.requests.length, 1)
  })

  await t.test('after upstream_unreachable the key is free again', async (t) => {
    upstream.reset()
    const unreachable = await instance({ API_URL: `http://127.0.0.1:${await freePort()}` })
    t.equal(codeOf(await order({ key: 'unreachable', at: unreachable })), 'upstream_unreachable')
    t.equal((await order({ key: 'unreachable' })).status, 200)
  })

  await t.test('after credential_renewed the key is free again', async (t) => {
    upstream.reset()
    upstream.answer = (_request, socket) =>
      upstream.requests.length === 1 ? status('401 No')(socket) : void socket.write(ok())
    t.equal(codeOf(await order({ key: 'renewed' })), 'credential_renewed')
    const sent = await order({ key: 'renewed', at: other })
    t.equal(sent.status, 200)
    t.equal(sent.headers['idempotency-replayed'], undefined)
    t.equal(upstream.requests.length, 2)
    const tokens = upstream.requests.map(({ headers }) => headers.find(([name]) => name === 'authorization')?.[1])
    t.not(tokens[1], tokens[0], 'the credential was renewed')
  })

  await t.test('a 401 to a bulk purchase is its answer: the key is never sent again', async (t) => {
    upstream.reset()
    const path = '/api/trading/v1/options/contracts/bulk-purchase/demo'
    upstream.answer = (_request, socket) => status('401 No')(socket)
    t.match(await order({ key: 'pat', path }), { status: 401, headers: { 'idempotency-replayed': undefined } })
    upstream.answer = (_request, socket) => void socket.write(ok())
    t.match(await order({ key: 'pat', path, at: other }), { status: 401, headers: { 'idempotency-replayed': 'true' } })
    t.equal(codeOf(await order({ key: 'pat', path, body: 'another' })), 'idempotency_key_reused')
    t.equal(upstream.requests.length, 1)
  })

  await t.test('a 401 to a bulk purchase that breaks off leaves an unknown outcome behind', async (t) => {
    upstream.reset()
    const path = '/api/trading/v1/options/contracts/bulk-purchase/real'
    upstream.answer = (_request, socket) => void socket.end('HTTP/1.1 401 No\r\nContent-Length: 9\r\n\r\nhalf')
    t.match((await order({ key: 'half pat', path })).json, { code: 'upstream_lost', outcome: 'unknown' })
    t.equal(codeOf(await order({ key: 'half pat', path, at: other })), 'outcome_unknown')
    t.equal(upstream.requests.length, 1)
  })

  await t.test('a browser that leaves before its call is lost leaves an unknown outcome behind', async (t) => {
    upstream.reset()
    const upstreamSocket = await abandon('gone')
    upstreamSocket.resetAndDestroy()
    await until(async () => codeOf(await order({ key: 'gone' })) === 'outcome_unknown')
    t.equal(upstream.requests.length, 1)
  })

  await t.test('a shutdown waits for a call whose browser has left, and records it', async (t) => {
    upstream.reset()
    const server = await instance({})
    const upstreamSocket = await abandon('restart', server)
    const closed = server.close()
    t.equal(codeOf(await order({ key: 'restart' })), 'idempotency_in_progress')
    upstreamSocket.write(ok('{"done":2}'))
    await closed
    t.equal((await order({ key: 'restart' })).text, '{"done":2}')
    t.equal(upstream.requests.length, 1)
  })

  await t.test('a session that logs out during the call does not stop it', async (t) => {
    upstream.reset()
    const arrived = new Promise<Socket>((resolve) => (upstream.answer = (_request, socket) => resolve(socket)))
    const response = order({ key: 'logged out' })
    const upstreamSocket = await within(arrived, 'the order arrives upstream')
    t.equal((await world.call('POST', '/auth/logout')).status, 204)
    upstreamSocket.write(ok('{"done":1}'))
    t.equal((await response).text, '{"done":1}')
    t.equal((await order({ key: 'logged out' })).status, 401, 'nobody can ask for the record')
    t.equal(upstream.requests.length, 1)
  })
})
