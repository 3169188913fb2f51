import type { ServerResponse } from 'node:http'
import type { Test } from 'tap'
import { JarBrowser } from '../browser/jar-browser.ts'
import { html, json, logInThere, startLogin, tokens, scripted } from '../login/token-endpoint.ts'
import { httpServer } from '../server/http-server.ts'
import { SESSION_KEYS } from '../../../src/store/keys.ts'
import { MemoryStore } from '../../../src/store/memory-store.ts'
import { testRedis } from '../server/test-server.ts'
import { samplesOf } from '../telemetry/metrics.ts'
import { nextEvent, until } from '../time/until.ts'
import { around, scrape, type Scenario } from './scrapes.ts'
import { PUBLIC, ACCOUNTS } from '../user.ts'
import { startWorld } from '../world.ts'
/** Enough events to make a rate. */
const TIMES = 6
/** A token lifetime that is over at once. */
const OVER = 0.001

async function times(what: () => Promise<unknown>): Promise<void> {
  for (let count = 0; count < TIMES; count++) await what()
}

/** Faults between a browser, the provider and upstream's REST API. */
export async function loginAndCallScenarios(t: Test): Promise<Scenario[]> {
  const api = await scriptedApi(t)
  const { provider, server } = await startWorld(t, {
    provider: scripted,
    settings: { API_URL: api.url, AUTH_STARTS_PER_MINUTE: '1000' },
  })
  const fresh = () => ({ server, browser: new JarBrowser() })
  const when = (name: string, raises: string[], happen: () => Promise<unknown>) => around(server, name, raises, happen)
  const logsIn = (answer: typeof provider.behaviour) => async () => {
    provider.behaviour = answer
    await times(() => logInThere(fresh()))
  }
  const anonymous = () => fetch(server.url + ACCOUNTS, { headers: { 'x-csrf': '1' } })
  const calls = async (behave: typeof api.behave, expiresIn = 3600, refresh = html(503)) => {
    provider.behaviour = tokens({ expires_in: expiresIn, refresh_token: 'refresh' })
    const { browser } = fresh()
    await logInThere({ server, browser })
    provider.behaviour = refresh
    api.behave = behave
    await Promise.all(Array.from({ length: TIMES }, () => browser.fetch(ACCOUNTS, { headers: { 'x-csrf': '1' } })))
  }
  return [
    await when('the provider is down', ['BffLoginsFailing'], logsIn(html(503))),
    await when('the provider refuses the scopes', ['BffLoginsFailing'], logsIn(json({ error: 'invalid_scope' }, 400))),
    await when(
      'the provider refuses this client',
      ['BffClientRefused'],
      logsIn(json({ error: 'invalid_client' }, 401)),
    ),
    await when('login cookies are lost', ['BffLoginsTurnedAway'], () =>
      times(async () => {
        const login = await startLogin(fresh())
        await new JarBrowser().navigate(`${server.url}/auth/callback?code=1&state=${login.state}`)
      }),
    ),
    await when('links are incomplete', ['BffAttributionBroken'], () =>
      times(() => new JarBrowser().navigate(`${server.url}/auth/signup?utm_source=CU1`)),
    ),
    await when('sessions are gone, and users log in again', ['BffCallsUnauthorized'], async () => {
      await logsIn(tokens({}))()
      await times(anonymous)
    }),
    await when('one page whose session has ended goes on asking', [], () => times(anonymous)),
    await when('the provider refuses the refreshes of one user, who goes on asking', ['BffServerErrors'], () =>
      calls((response) => response.end('{}'), OVER, json({ error: 'invalid_request' }, 400)),
    ),
    await when('upstream hangs up', ['BffServerErrors', 'BffUpstreamFailing'], () =>
      calls((response) => response.destroy()),
    ),
    await when('upstream is slow', ['BffSlow', 'BffUpstreamCrawls', 'BffUpstreamSlow'], () =>
      calls((response) => setTimeout(() => response.end('{}'), 2800)),
    ),
    await when('the provider gives no new tokens', ['BffRefreshesFailing', 'BffServerErrors'], () =>
      calls((response) => response.end('{}'), OVER),
    ),
  ]
}

/** An upstream REST API that a test scripts. */
async function scriptedApi(t: Test): Promise<{ url: string; behave: (response: ServerResponse) => unknown }> {
  const api = {
    url: await httpServer(t, (_request, response) => void api.behave(response)),
    behave: (response: ServerResponse): unknown => response.end('{}'),
  }
  return api
}

/** Too many logins from one address. */
export async function limitScenario(t: Test): Promise<Scenario> {
  const { server } = await startWorld(t, { provider: scripted, settings: { AUTH_STARTS_PER_MINUTE: '1' } })
  return around(server, 'all users have one address', ['BffLoginsTurnedAway'], () =>
    times(() => new JarBrowser().navigate(`${server.url}/auth/login`)),
  )
}

/** Redis is gone. */
export async function storeScenario(t: Test): Promise<Scenario> {
  const world = await startWorld(t, { provider: scripted, redis: true, settings: { READY_GRACE_SECONDS: '1' } })
  const { server, redis } = world
  return around(server, 'Redis is gone', ['BffStoreDown', 'BffNotReady', 'BffLoginsFailing'], async () => {
    await redis?.close()
    await until(async () => !(await fetch(`${server.opsUrl}/readyz`)).ok)
    await times(() => new JarBrowser().navigate(`${server.url}/auth/login`))
  })
}

/** One of the three masters of a Cluster does not serve, and nobody calls who would meet it. */
export async function lostMasterScenario(t: Test): Promise<Scenario> {
  const store = new MemoryStore()
  const whole = store.condition()
  const { server } = await startWorld(t, { provider: scripted, store })
  return around(server, 'a master of a Cluster is gone', ['BffStoreDown'], async () => {
    store.condition = () => ({ ...whole, share: 2 / 3 })
  })
}

/** Redis is filled. */
export async function fullStoreScenario(t: Test): Promise<Scenario> {
  const world = await startWorld(t, { provider: scripted, redis: true })
  const { server } = world
  const redis = await world.storeClient()
  const shows = (text: RegExp) => until(async () => text.test(await scrape(server)), String(text))
  return around(
    server,
    'Redis is full',
    ['BffStoreRefusesWrites', 'BffStoreNearlyFull', 'BffLoginsFailing'],
    async () => {
      await redis.configSet({ maxmemory: '1', 'maxmemory-policy': 'noeviction' })
      await new JarBrowser().navigate(`${server.url}/auth/login`)
      await shows(/^bff_session_store_memory_max_bytes 1$/m)
    },
  )
}

/** Users send many orders with keys, and then Redis loses sessions. */
export async function sessionScenarios(t: Test): Promise<Scenario[]> {
  const api = await scriptedApi(t)
  const settings = { API_URL: api.url, AUTH_STARTS_PER_MINUTE: '1000' }
  const world = await startWorld(t, { provider: scripted, redis: true, settings })
  const { server } = world
  const redis = await world.storeClient()
  const browsers = Array.from({ length: 24 }, () => new JarBrowser())
  for (const browser of browsers) await logInThere({ server, browser })
  let orders = 0
  const order = async (browser: JarBrowser): Promise<void> => {
    const headers = { 'x-csrf': '1', 'idempotency-key': `key ${++orders}` }
    await browser.fetch(ACCOUNTS, { method: 'POST', headers, body: '{}' })
  }
  const manyOrders = await around(server, 'each user has sent fifty orders with keys', [], async () => {
    for (let count = 0; count < 50; count++) await Promise.all(browsers.map(order))
  })
  /** The users find out when their pages ask. */
  const lose = async (name: string, what: () => Promise<unknown>, count: number): Promise<Scenario> => {
    const before = await lost(server)
    const scenario = await around(server, name, ['BffSessionsLost'], async () => {
      await what()
      for (const browser of browsers) await browser.fetch('/auth/session')
      await until(async () => (await lost(server)) === before + count, 'the sessions are counted')
    })
    return { ...scenario, happensOnce: true }
  }
  const keys = (await redis.keys(`${SESSION_KEYS.prefix}*`)).filter(({ length }) => length === SESSION_KEYS.length)
  const half = keys.slice(0, browsers.length / 2)
  return [
    manyOrders,
    await lose('Redis has lost half of the sessions', () => redis.del(half), half.length),
    await lose('Redis is emptied', () => redis.flushAll(), keys.length - half.length),
  ]
}

async function lost({ opsUrl }: { readonly opsUrl: string }): Promise<number> {
  return (await samplesOf(opsUrl, 'bff_sessions_ended_total')).get('reason="gone"') ?? Number.NaN
}

/** A stopped replica of Redis receives neither a logout nor the record of an order. */
export async function replicaScenario(t: Test): Promise<Scenario> {
  const settings = { IDEMPOTENCY_REPLICAS: '1' }
  const { server, browser, redis, storeClient, logIn } = await startWorld(t, {
    provider: scripted,
    redis: true,
    settings,
  })
  const replica = await testRedis(t, ['--replicaof', '127.0.0.1', String(redis?.port)])
  const master = await storeClient()
  await logIn()
  const logOut = () => browser.fetch('/auth/logout', { method: 'POST', headers: { 'x-csrf': '1' } })
  const order = { method: 'POST', headers: { 'x-csrf': '1', 'idempotency-key': 'k' } }
  // So few calls are made here that one 503 is a large part.
  const raises = ['BffLogoutUnreplicated', 'BffKeysUnconfirmed', 'BffServerErrors']
  return around(server, 'a replica is stopped', raises, async () => {
    await until(async () => (await master.info('replication')).includes('state=online'))
    replica.process.kill('SIGSTOP')
    // The server may learn of the replica only now.
    await until(async () => {
      await logOut()
      await logIn()
      return /bff_session_ends_unreplicated_total [1-9]/.test(await scrape(server))
    }, 'a logout that no replica has confirmed')
    t.equal((await browser.fetch('/api/payment-agents/v1/transfer', order)).status, 503)
    replica.process.kill('SIGCONT')
  })
}

/** The number of sockets reaches its limit, and readers are too slow. */
export async function socketScenario(t: Test): Promise<Scenario> {
  const settings = { MAX_RELAYS: '3', MAX_BUFFERED_BYTES: '200000', SLOW_CONSUMER_SECONDS: '1' }
  const world = await startWorld(t, { upstream: 'scripted', settings })
  const raises = ['BffRelaysNearLimit', 'BffSlowConsumers']
  return around(world.server, 'sockets are many and slow', raises, async () => {
    const slow = await world.socket(PUBLIC).opened()
    const peer = await world.upstream.socket()
    slow.socket.pause()
    const message = 'x'.repeat(10_000)
    for (let count = 0; count < 4000; count++) peer.send(message)
    await nextEvent(peer, 'close')
    slow.socket.resume()
    await slow.closed
    for (let count = 0; count < 3; count++) await world.socket(PUBLIC).opened()
  })
}

/** An ordinary day, which must raise no alert. */
export async function ordinaryScenario(t: Test): Promise<Scenario> {
  const api = await scriptedApi(t)
  const { server, provider } = await startWorld(t, { provider: scripted, redis: true, settings: { API_URL: api.url } })
  provider.behaviour = tokens({ refresh_token: 'refresh' })
  return around(server, 'an ordinary day', [], () =>
    times(async () => {
      const browser = new JarBrowser()
      await logInThere({ server, browser })
      await browser.fetch(ACCOUNTS, { headers: { 'x-csrf': '1' } })
      await browser.fetch('/auth/logout', { method: 'POST', headers: { 'x-csrf': '1' } })
      const complete = 'sidc=0f8fad5b-d9cb-469f-a165-70867728950e&utm_campaign=c&utm_medium=affiliate&utm_source=CU1'
      await browser.navigate(`${server.url}/auth/signup?${complete}`)
    }),
  )
}
