import { test, type Test } from 'tap'
import { LOOKUP_PLACES } from '../../src/config/thread-pool.ts'
import { lookupThreads, type LookupThreads } from '../support/peers/lookup-threads.ts'
import { testServer, type TestServer } from '../support/server/test-server.ts'
import { until } from '../support/time/until.ts'
import { PUBLIC, sendTo, type Answer, ACCOUNTS } from '../support/user.ts'
import { startWorld, type World, RELAY } from '../support/world.ts'

/** A server each of whose peers has a name of its own, and what its users do. */
interface NamedWorld {
  readonly world: World<'scripted'>
  readonly names: LookupThreads
  /** Of this world alone, since addresses are remembered. */
  readonly named: Readonly<Record<'provider' | 'api' | 'sockets' | 'redis', string>>
  readonly server: TestServer
  /** A call over a new connection. */
  readonly call: () => Promise<Answer>
  /** The callback of a login with a made-up code. */
  readonly login: () => Promise<Answer>
  /** The redirects of logins that have ended. */
  readonly ended: string[]
}

let worlds = 0

const at = (url: string, name: string): string => url.replace(/127\.0\.0\.1|localhost/, name)

async function namedWorld(t: Test, more: Readonly<Record<string, string>> = {}): Promise<NamedWorld> {
  const ending = `-${++worlds}.test`
  const named = {
    provider: `provider${ending}`,
    api: `api${ending}`,
    sockets: `sockets${ending}`,
    redis: `redis${ending}`,
  }
  const names = lookupThreads(t, LOOKUP_PLACES)
  const world = await startWorld(t, { ...RELAY, redis: true })
  const { upstream, provider, settings, browser } = world
  const server = await testServer(t, {
    ...settings,
    API_URL: at(`http://${upstream.host}`, named.api),
    WS_URL: at(`ws://${upstream.host}`, named.sockets),
    TOKEN_URL: at(`${provider.url}/oauth2/token`, named.provider),
    REDIS_URL: at(world.redis?.url ?? '', named.redis),
    // Every call needs a new connection.
    UPSTREAM_MAX_CONNECTION_SECONDS: '1',
    ...more,
  })
  upstream.onRest = (_request, response) => {
    response.writeHead(200, { connection: 'close', 'content-type': 'application/json' }).end('{"data":[]}')
  }
  const { port } = server
  const cookie = browser.cookieHeader(new URL(settings['PUBLIC_URL'] ?? ''), undefined)
  const ended: string[] = []
  return {
    world,
    names,
    named,
    server,
    ended,
    call: () => sendTo(port, 'GET', ACCOUNTS, { headers: { cookie, 'x-csrf': '1' } }),
    async login() {
      const { headers } = await sendTo(port, 'GET', '/auth/login')
      const state = new URL(headers.location ?? '').searchParams.get('state')
      const own = { cookie: headers['set-cookie']?.[0]?.split(';')[0] ?? '' }
      const answer = await sendTo(port, 'GET', `/auth/callback?code=x&state=${state}`, { headers: own })
      ended.push(answer.headers.location ?? '')
      return answer
    },
  }
}

await test('While the name of the provider does not resolve and twenty logins wait, calls, sockets and Redis connect at once', async (t) => {
  const { world, names, named, server, call, login, ended } = await namedWorld(t)
  names.silent.add(named.provider)
  const logins = Array.from({ length: 20 }, login)
  await until(() => names.unanswered(named.provider) > 0)
  t.equal((await call()).status, 200)
  await world.joined(PUBLIC, { at: server })
  const client = await world.storeClient()
  const connected = () => server.log.filter(({ msg }) => msg === 'the session store is connected').length
  const before = connected()
  await client.sendCommand(['CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes'])
  await until(() => connected() > before, 'a dropped connection to Redis is rebuilt')
  t.equal((await call()).status, 200)
  for (const { headers } of await Promise.all(logins)) t.match(headers.location, 'auth_error=provider_unavailable')
  t.equal((await call()).status, 200, 'also when the logins have given up, and their lookups go on')
  await world.joined(PUBLIC, { at: server })
  t.ok(names.unanswered(named.provider) <= 2, 'there are never more than two lookups of one name')
  t.equal(ended.length, 20)
})

await test('While the names of upstream do not resolve, ten sockets and ten calls wait and logins go on', async (t) => {
  const { world, names, named, server, call, login } = await namedWorld(t, { UPSTREAM_CONNECT_SECONDS: '1' })
  names.silent.add(named.api).add(named.sockets)
  const sockets = Array.from({ length: 10 }, () => world.socket(PUBLIC, { at: server }))
  const calls = Array.from({ length: 10 }, call)
  await until(() => names.unanswered(named.api) > 0 && names.unanswered(named.sockets) > 0)
  t.match((await login()).headers.location, 'auth_error=invalid_grant', 'the provider has judged the code')
  for (const { status } of await Promise.all(calls)) t.equal(status, 502)
  t.match((await login()).headers.location, 'auth_error=invalid_grant')
  const late = server.log.filter(({ msg }) => msg === 'a name is not resolved in time')
  t.same(late.map(({ host, serves }) => `${host as string}: ${serves as string}`).sort(), [
    `${named.api}: none`,
    `${named.sockets}: none`,
  ])
  names.silent.clear()
  names.answer(named.api)
  names.answer(named.sockets)
  t.equal((await call()).status, 200)
  await until(() => world.upstream.open === 10, 'the sockets still wait, and are served')
  for (const { socket } of sockets) t.equal(socket.readyState, socket.OPEN)
})
