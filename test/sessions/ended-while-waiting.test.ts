import { test, type Test } from 'tap'
import { type Answer, logOut, ACCOUNTS, TRANSFER, TRADING } from '../support/user.ts'
import { BrowserSocket } from '../support/browser/browser-socket.ts'
import { operate, IDENTITY } from '../support/login/identity.ts'
import { valueOf } from '../support/telemetry/metrics.ts'
import { answerJson } from '../support/upstream/scripted-upstream.ts'
import { slowNames, type SlowNames } from '../support/upstream/slow-names.ts'
import { isLoggedIn, scripted, type TokenEndpoint } from '../support/login/token-endpoint.ts'
import { until } from '../support/time/until.ts'
import { type TestServer } from '../support/server/test-server.ts'
import { startWorld, type World } from '../support/world.ts'
const RECORDS = 'bff:1:idempotency:*'
const USER = 'CR1'
/** Longer than a body that is sent only once it is complete. */
const LONG = 100_000

const KINDS = ['read', 'order', 'keyed', 'streamed'] as const
type Kind = (typeof KINDS)[number]

interface WaitingWorld extends Omit<World<'scripted', TokenEndpoint>, 'call'> {
  /** An instance whose connections to upstream wait. The world's own server is the other one. */
  readonly slow: TestServer
  readonly names: SlowNames
  /** What has arrived upstream. */
  readonly arrived: string[]
  /** Makes one call of each kind. Resolves once all of them wait for a connection. */
  call(...kinds: readonly Kind[]): Promise<{ readonly answers: Promise<Map<Kind, Answer>> }>
  /** Makes a call that need not wait. */
  repeat(kind: Kind): Promise<Answer>
  /** Asks for a trading socket. Resolves once the request for its one-time URL waits for a connection. */
  connect(): Promise<BrowserSocket>
}

async function waitingWorld(t: Test): Promise<WaitingWorld> {
  const own = { ...IDENTITY, UPSTREAM_CONNECT_SECONDS: '600' }
  const world = await startWorld(t, {
    provider: scripted,
    upstream: 'scripted',
    redis: true,
    settings: own,
    user: USER,
  })
  const { upstream } = world
  const names = slowNames(t)
  const API_URL = `http://${upstream.host.replace('127.0.0.1', names.host)}`
  const slow = await world.instance({ API_URL })
  const arrived: string[] = []
  upstream.onRest = (request, response) => {
    arrived.push(`${request.method} /api${request.url}`)
    request.resume().on('end', () => answerJson(response, 200, { data: [] }))
  }
  const { call, order } = world
  const calls: Record<Kind, () => Promise<Answer>> = {
    read: () => call('GET', ACCOUNTS, { at: slow }),
    order: () => order({ at: slow }),
    keyed: () => order({ at: slow, key: 'one', body: '{"amount":2}' }),
    streamed: () => order({ at: slow, body: 'x'.repeat(LONG) }),
  }
  let waiting = 0
  const waits = (count: number): Promise<void> => {
    waiting += count
    return until(() => names.waiting === waiting, 'each waits for a connection of its own')
  }
  return {
    ...world,
    slow,
    names,
    arrived,
    async call(...kinds) {
      const answers = Promise.all(kinds.map(async (kind) => [kind, await calls[kind]()] as const))
      await waits(kinds.length)
      return { answers: answers.then((list) => new Map(list)) }
    },
    repeat: (kind) => calls[kind](),
    async connect() {
      const socket = world.socket(TRADING, { at: slow })
      await waits(1)
      return socket
    },
  }
}

const ENDS: Record<string, (world: WaitingWorld) => Promise<unknown>> = {
  'a logout': ({ browser, server }) => logOut(browser, server.url),
  'a logout everywhere': ({ browser, server }) => logOut(browser, server.url, '?everywhere=true'),
  'an operator': ({ server }) => operate(server, 'DELETE', { subject: USER }),
  'a new login of the browser': async (world) => (await world.startLogin()).finish({ code: USER }),
}

for (const [name, end] of Object.entries(ENDS)) {
  await test(`calls and sockets whose session is ended by ${name} on another instance while they wait are not sent`, async (t) => {
    const world = await waitingWorld(t)
    const { slow, names, arrived, upstream, browser } = world
    const client = await world.storeClient()
    const before = browser.clone()
    const { answers } = await world.call(...KINDS)
    const socket = await world.connect()
    t.equal((await client.keys(RECORDS)).length, 1)
    await end(world)
    await until(async () => !(await isLoggedIn(before, `http://localhost:${slow.port}`)), 'the instance knows')
    names.release()
    for (const [kind, answer] of await answers) {
      t.match(answer, { status: 401, json: { code: 'session_expired' } }, kind)
    }
    t.match(await socket.closed, { code: 4401, reason: 'session_expired' })
    t.same(arrived, [], 'upstream has seen none of them')
    t.same(upstream.otpRequests, [])
    t.same(await client.keys(RECORDS), [], 'the Idempotency-Key is free')
  })
}

/** Another instance has moved the idle limit of the only session, and this one knows that something has changed. */
async function change(t: Test, world: WaitingWorld): Promise<void> {
  const client = await world.storeClient()
  // Not the count of its Idempotency-Keys, whose name only begins like that.
  const key = (await client.keys('bff:1:session:*')).find((each) => /^bff:1:session:[\w-]+$/.test(each)) ?? ''
  t.equal(await client.pExpire(key, 3_000_000), 1)
  await until(async () => (await valueOf(world.slow.opsUrl, 'bff_near_cache_sessions')) === 0)
}

await test('calls whose session has changed while they wait, but lives, are sent once', async (t) => {
  const world = await waitingWorld(t)
  const { answers } = await world.call('read', 'order', 'keyed')
  await change(t, world)
  world.names.release()
  for (const [kind, answer] of await answers) t.equal(answer.status, 200, kind)
  t.same(world.arrived.toSorted(), [`GET ${ACCOUNTS}`, `POST ${TRANSFER}`, `POST ${TRANSFER}`])
})

await test('an upload whose session has changed while it waits is not sent, and may be repeated', async (t) => {
  const world = await waitingWorld(t)
  const { answers } = await world.call('streamed')
  await change(t, world)
  world.names.release()
  t.match((await answers).get('streamed'), { status: 503, json: { code: 'credential_renewed' } })
  t.same(world.arrived, [])
  t.equal((await world.repeat('streamed')).status, 200)
})

await test('calls and sockets that wait while the store goes are not sent', async (t) => {
  const world = await waitingWorld(t)
  const { redis, slow, names, arrived, upstream } = world
  const { answers } = await world.call(...KINDS)
  const socket = await world.connect()
  await redis?.close()
  await until(async () => (await valueOf(slow.opsUrl, 'bff_near_cache_sessions')) === 0)
  names.release()
  for (const [kind, answer] of await answers) {
    t.match(answer, { status: 503, json: { code: 'session_store_unavailable' } }, kind)
  }
  t.match(await socket.closed, { code: 1013, reason: 'session_store_unavailable' })
  t.same(arrived, [])
  t.same(upstream.otpRequests, [])
})
