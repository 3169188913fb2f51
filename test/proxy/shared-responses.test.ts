import type { Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { createClient, type RedisClientType } from 'redis'
import { test } from 'tap'
import { freePort } from '../../sandbox/listening.ts'
import { ok } from '../support/upstream/raw-upstream.ts'
import { timeAhead } from '../support/time/clock-ahead.ts'
import { until, within } from '../support/time/until.ts'
import { LosingProxy } from '../support/redis/losing-proxy.ts'
import { testRedis, testServer } from '../support/server/test-server.ts'
import { sendTo } from '../support/user.ts'
import { startWorld, API } from '../support/world.ts'

/** Much less than a claim lasts. */
const SOON_MS = 6000
const HEALTH = '/api/v1/health'
/** How often Redis was asked for the value of a key. */
const readsOf = async (client: Pick<RedisClientType, 'info'>) =>
  Number(/^cmdstat_get:calls=(\d+)/m.exec(await client.info('commandstats'))?.[1] ?? 0)
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

await test('too many callers that wait for the same response get 429', async (t) => {
  const { send, upstream } = await startWorld(t, API)
  const asked = new Promise<Socket>((resolve) => {
    upstream.answer = (_request, socket) => resolve(socket)
  })
  const headers = { 'x-csrf': '1' }
  const crowd = [send('GET', HEALTH, { headers })]
  const socket = await asked
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
  t.equal((await send('GET', HEALTH, { headers })).text, '{"late":1}', 'permits are released')
  t.equal(upstream.requests.length, 1)
})

await test('all instances together ask upstream once in HEALTH_SECONDS, and answer with the last response while it is asked again', async (t) => {
  const { upstream, settings, server } = await startWorld(t, { ...API, redis: true, settings: { HEALTH_SECONDS: '3' } })
  const other = await testServer(t, { ...settings, HEALTH_SECONDS: '3' })
  const crowd = () =>
    Promise.all(Array.from({ length: 40 }, (_, index) => ask(index % 2 === 0 ? server.port : other.port)))
  let requests = 0
  const answers: (() => void)[] = []
  upstream.answer = (_request, socket) => {
    const text = `{"request":${++requests}}`
    const answer = () => void socket.write(ok(text))
    if (requests === 1) setTimeout(answer, 300)
    else answers.push(answer)
  }
  for (const { text } of await crowd()) t.equal(text, '{"request":1}')
  t.equal(requests, 1)
  t.same(new Set((await crowd()).map(({ text }) => text)), new Set(['{"request":1}']))
  t.equal(requests, 1)

  await sleep(3000)
  const asking = ask(server.port)
  await until(() => requests === 2)
  for (const who of [other, server, other]) {
    t.equal((await ask(who.port)).text, '{"request":1}', 'the others get the last one')
  }
  for (const answer of answers) answer()
  t.equal((await asking).text, '{"request":2}', 'a new caller waits')
  await until(async () => (await ask(other.port)).text === '{"request":2}')
  t.equal(requests, 2)
})

await test('a response counts no longer for other instances when the clock of the one that asked is an hour ahead', async (t) => {
  const world = await startWorld(t, { ...API, redis: true, settings: { HEALTH_SECONDS: '1' } })
  const { upstream } = world
  const { server, settings } = world
  const other = await testServer(t, { ...settings, PUBLIC_URL: server.url, PORT: String(await freePort()) })
  upstream.answer = (_request, socket) => void socket.write(ok(`{"answer":${upstream.requests.length}}`))
  const ahead = timeAhead(t)
  ahead(3_600_000)
  t.equal((await ask(server.port)).text, '{"answer":1}')
  ahead(-3_600_000)
  await until(async () => (await ask(other.port)).text !== '{"answer":1}', 'upstream is asked again')
  t.equal((await ask(other.port)).text, '{"answer":2}')
})

await test('the largest response is shared by all instances, too', async (t) => {
  const { upstream, settings, server } = await startWorld(t, { ...API, redis: true })
  const other = await testServer(t, settings)
  const page = 'x'.repeat(65_536)
  upstream.answer = (_request, socket) =>
    void socket.write(`HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\nContent-Length: 65536\r\n\r\n${page}`)
  for (const port of [server.port, other.port]) {
    const response = await ask(port)
    t.equal(response.status, 404)
    t.ok(response.text === page)
  }
  t.equal(upstream.requests.length, 1)
})

await test('the claim of an instance that dies while it asks expires, and another instance asks upstream', async (t) => {
  const { upstream, send, redis } = await startWorld(t, { ...API, redis: true })
  const client = await createClient({ url: redis?.url ?? '' }).connect()
  t.teardown(() => client.close())
  await client.set('bff:1:response:/v1/health', 'a claim of the dead', {
    expiration: { type: 'PX', value: 2500 },
  })
  const before = await readsOf(client)
  const { status } = await send('GET', HEALTH, { headers: { 'x-csrf': '1' } })
  t.equal(status, 200)
  t.equal(upstream.requests.length, 1)
  const reads = (await readsOf(client)) - before
  t.ok(reads > 1 && reads <= 8, `who waits reads ever more rarely: ${reads} times`)
})

await test('without the store each process asks for itself, and a response that was not sealed with our secrets is ignored', async (t) => {
  const { upstream, server, redis } = await startWorld(t, { ...API, redis: true, settings: { HEALTH_SECONDS: '2' } })
  const { port } = server
  const client = await createClient({ url: redis?.url ?? '' }).connect()
  const key = 'bff:1:response:/v1/health'
  t.equal((await ask(port)).status, 200)
  const sealed = await client.get(key)
  t.notMatch(sealed, /answered|status/, 'the stored response is sealed')
  await sleep(2010)
  const forged = { outcome: { is: 'answered', status: 200, headers: {}, body: 'PGgxPg==' }, freshUntil: 9e15 }
  await client.set(key, JSON.stringify(forged), { expiration: { type: 'PX', value: 500 } })
  t.equal((await ask(port)).text, '{}')
  await client.close()
  await redis?.close()
  await sleep(2010)
  const before = upstream.requests.length
  t.equal((await ask(port)).status, 200)
  t.equal((await ask(port)).status, 200)
  t.equal(upstream.requests.length, before + 1)
})

await test('an instance that has not heard that it has the claim asks, and the others need not wait until it expires', async (t) => {
  const redis = await testRedis(t)
  const proxy = await LosingProxy.start(t, redis)
  const { upstream, settings, server } = await startWorld(t, { ...API, settings: { REDIS_URL: proxy.url } })
  const { port } = await testServer(t, { ...settings, PUBLIC_URL: server.url, REDIS_URL: redis.url })
  upstream.answer = (_request, socket) => void socket.write(ok('{}'))
  const lost = proxy.loseReply((sent) => sent.includes("'NX'") && sent.includes('bff:1:response:'))
  t.equal((await ask(server.port)).status, 200)
  await lost
  t.equal((await within(ask(port), 'the other instance', SOON_MS)).status, 200)
})

await test('nobody waits for a silent store until it counts as lost, neither before upstream is asked nor after', async (t) => {
  for (const when of ['before', 'after'] as const) {
    const { upstream, redis, server } = await startWorld(t, { ...API, redis: true })
    const stop = () => redis?.process.kill('SIGSTOP')
    upstream.answer = (_request, socket) => {
      if (when === 'after') stop()
      socket.write(ok('{}'))
    }
    if (when === 'before') stop()
    t.equal((await ask(server.port)).status, 200)
    const losses = server.log.filter(({ msg }) => msg === 'the session store does not respond')
    t.equal(losses.length, 0, `the store was silent ${when} that`)
    redis?.process.kill('SIGCONT')
  }
})
