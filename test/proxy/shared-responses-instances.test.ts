import { setTimeout as sleep } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { freePort } from '../../sandbox/listening.ts'
import { createClient } from '../support/redis/client.ts'
import { CommandProxy } from '../support/redis/command-proxy.ts'
import { storeClient } from '../support/redis/store-client.ts'
import { testRedis, testServer } from '../support/server/test-server.ts'
import { timeAhead } from '../support/time/clock-ahead.ts'
import { sideBySide } from '../support/time/side-by-side.ts'
import { until, within } from '../support/time/until.ts'
import { ok } from '../support/upstream/raw-upstream.ts'
import { sendTo } from '../support/user.ts'
import { startWorld, API } from '../support/world.ts'

/** Much less than a claim lasts. */
const SOON_MS = 6000
const HEALTH = '/api/v1/health'
/** How often Redis was asked for the value of a key. */
const readsOf = async (client: Pick<ReturnType<typeof createClient>, 'info'>) =>
  Number(/^cmdstat_get:calls=(\d+)/m.exec(await client.info('commandstats'))?.[1] ?? 0)
const ask = (port: number) => sendTo(port, 'GET', HEALTH, { headers: { 'x-csrf': '1' } })
/** A world with a Redis of its own, where a shared response is kept for so many seconds. */
const keptFor = (t: Test, seconds: string) =>
  startWorld(t, { ...API, redis: true, settings: { HEALTH_SECONDS: seconds } })

await sideBySide({
  'all instances together ask upstream once in HEALTH_SECONDS, and answer with the last response while it is asked again':
    async (t) => {
      const { upstream, settings, server } = await keptFor(t, '3')
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
    },
  'the claim of an instance that dies while it asks expires, and another instance asks upstream': async (t) => {
    const { upstream, send, redis } = await startWorld(t, { ...API, redis: true })
    const client = await storeClient(t, { redis })
    await client.set('bff:1:response:/v1/health', 'a claim of the dead', {
      expiration: { type: 'PX', value: 2500 },
    })
    const before = await readsOf(client)
    const { status } = await send('GET', HEALTH, { headers: { 'x-csrf': '1' } })
    t.equal(status, 200)
    t.equal(upstream.requests.length, 1)
    const reads = (await readsOf(client)) - before
    t.ok(reads > 1 && reads <= 8, `who waits reads ever more rarely: ${reads} times`)
  },
  'without the store each process asks for itself, and a response that was not sealed with our secrets is ignored':
    async (t) => {
      const { upstream, server, redis } = await keptFor(t, '2')
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
    },
})

await test('a response counts no longer for other instances when the clock of the one that asked is an hour ahead', async (t) => {
  const world = await keptFor(t, '1')
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

await test('an instance that has not heard that it has the claim asks, and the others need not wait until it expires', async (t) => {
  const redis = await testRedis(t)
  const proxy = await CommandProxy.start(t, redis)
  const { upstream, settings, server } = await startWorld(t, { ...API, settings: { REDIS_URL: proxy.url } })
  const { port } = await testServer(t, { ...settings, PUBLIC_URL: server.url, REDIS_URL: redis.url })
  upstream.answer = (_request, socket) => void socket.write(ok('{}'))
  const lost = proxy.suffer('gets no reply', (sent) => sent.includes("'NX'") && sent.includes('bff:1:response:'))
  t.equal((await ask(server.port)).status, 200)
  await lost
  t.equal((await within(ask(port), 'the other instance', SOON_MS)).status, 200)
})

await test('an instance that cannot store the response gives its claim back, and the others need not wait until it expires', async (t) => {
  const redis = await testRedis(t)
  const proxy = await CommandProxy.start(t, redis)
  const { upstream, settings, server } = await startWorld(t, { ...API, settings: { REDIS_URL: proxy.url } })
  const { port } = await testServer(t, { ...settings, PUBLIC_URL: server.url, REDIS_URL: redis.url })
  upstream.answer = (_request, socket) => {
    if (upstream.requests.length === 1) proxy.isDown = true
    socket.write(ok('{}'))
  }
  t.equal((await ask(server.port)).status, 200)
  proxy.isDown = false
  t.equal((await within(ask(port), 'the other instance', SOON_MS)).status, 200)
  t.equal(upstream.requests.length, 2)
})

await test('nobody waits for a silent store until it counts as lost, neither before upstream is asked nor after', async (t) => {
  const isAnsweredFirst = async (when: 'before' | 'after'): Promise<boolean> => {
    const { upstream, redis, server } = await startWorld(t, { ...API, redis: true })
    const stop = () => redis?.process.kill('SIGSTOP')
    upstream.answer = (_request, socket) => {
      if (when === 'after') stop()
      socket.write(ok('{}'))
    }
    if (when === 'before') stop()
    t.equal((await ask(server.port)).status, 200)
    const losses = server.log.filter(({ msg }) => msg === 'the session store does not respond')
    redis?.process.kill('SIGCONT')
    return losses.length === 0
  }
  for (const when of ['before', 'after'] as const) {
    let isFirst = false
    // A machine that is busy for a second may need another try.
    for (let tries = 0; tries < 3 && !isFirst; tries++) isFirst = await isAnsweredFirst(when)
    t.ok(isFirst, `the store was silent ${when} that`)
  }
})
