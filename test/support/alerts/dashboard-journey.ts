import type { ServerResponse } from 'node:http'
import type { Test } from 'tap'
import type { WebSocket } from 'ws'
import { JarBrowser } from '../browser/jar-browser.ts'
import { control, controlsWorld, pause, type ControlsWorld } from '../controls/controls-world.ts'
import { reply, served } from '../feed/world.ts'
import { html, json, startLogin, tokens } from '../login/token-endpoint.ts'
import { twoWorkers, workerPids } from '../server/two-workers.ts'
import { until } from '../time/until.ts'
import { answerJson } from '../upstream/scripted-upstream.ts'
import { ACCOUNTS } from '../user.ts'

type Message = Record<string, unknown>
const UNREAD = { text: '', isTaken: true }

/** What upstream may do with an order. */
const ANSWERS: readonly ((response: ServerResponse) => unknown)[] = [
  (response) => answerJson(response, 200, {}),
  (response) => answerJson(response, 400, {}),
  (response) => answerJson(response, 500, {}),
  (response) => response.destroy(),
]
const COMPLETE_LINK =
  '/auth/signup?sidc=0f8fad5b-d9cb-469f-a165-70867728950e&utm_campaign=c&utm_medium=affiliate&utm_source=CU1'

/** Instances to which everything happens that a dashboard shows. */
export interface DashboardJourney {
  /** host:port of each ops listener. */
  readonly targets: readonly string[]
  /** All of it, once. */
  happens(): Promise<void>
}

/** Starts the instances, which end with the test. */
export async function dashboardJourney(t: Test): Promise<DashboardJourney> {
  // A start waits for a fourth of the longest window.
  const settings = { PUBLIC_FEED: 'shared', UPSTREAM_BUDGET: '3000/20', TRUST_PROXY: '1' }
  const world = await controlsWorld(t, { settings })
  // Its budget is another one, which twelve orders use up.
  const poor = await world.instance({ UPSTREAM_BUDGET: '10/20', UPSTREAM_BUDGET_NAME: 'small' })
  const workers = await twoWorkers(t)
  const opsHosts = [...world.servers, poor].map(({ opsUrl }) => new URL(opsUrl).host)
  world.upstream.onSocket = (socket) =>
    void socket.on('message', (data: Buffer) => {
      const message = JSON.parse(data.toString()) as Message
      if (!('ticks' in message)) return reply({ ...UNREAD, message, socket }, { msg_type: 'proposal' })
      socket.send('{"msg_type":"nobody has asked for this"}')
      reply({ ...UNREAD, message, socket }, served(message))
      feeds.add(socket)
    })
  const feeds = new Set<WebSocket>()
  let rounds = 0
  return {
    targets: [...opsHosts, `127.0.0.1:${workers.opsPort}`],
    async happens() {
      const name = `CR${++rounds}`
      // What the last round has left.
      world.upstream.onUpgrade = undefined
      await control(world.server, 'DELETE', '/orders')
      await orders(world, name)
      const user = await world.user(`${name}-poor`)
      for (let count = 0; count < 12; count++) await user.order({ at: poor })
      await sockets(world, name)
      await refreshes(world)
      await logins(world)
      await pauses(world, name)
      await faultsOfRedis(world)
      // Last, so that Prometheus sees its sockets open before.
      loseFeed(world, feeds)
      process.kill(workerPids(workers).at(-1) ?? 0, 'SIGKILL')
    },
  }
}

/** Reads, and orders with every outcome, some of them with keys. */
async function orders(world: ControlsWorld, name: string): Promise<void> {
  const { servers, upstream } = world
  const [server] = servers
  const user = await world.user(name)
  for (const each of servers) for (let count = 0; count < 3; count++) await user.call('GET', ACCOUNTS, { at: each })
  const usual = upstream.onRest
  for (const [index, answer] of ANSWERS.entries()) {
    upstream.onRest = (request, response) => {
      if (request.method === 'GET') return usual(request, response)
      request.resume().on('end', () => answer(response))
    }
    const keyed = { key: `"${name}-${index}"` }
    for (const init of [{}, keyed, keyed]) await user.order({ ...init, body: '{}' })
  }
  upstream.onRest = (request, response) =>
    request.method === 'GET' ? usual(request, response) : answerJson(response, 429, {})
  const limited = await world.user(`${name}-limited`)
  for (let count = 0; count < 3; count++) await limited.order({ at: server })
  upstream.onRest = usual
}

/** Sockets of every kind, a feed that is lost, and a socket without a session. */
async function sockets(world: ControlsWorld, name: string): Promise<void> {
  const [server] = world.servers
  const user = await world.user(name)
  const { socket: open } = world.visitor()
  const { browser } = await world.trade(user, server)
  await user.socket('/ws/session').opened()
  for (let count = 0; count < 2; count++) {
    const watcher = await open('/ws/public').opened()
    watcher.socket.send('{"ticks":"R_100","subscribe":1}')
    await watcher.count(1)
    watcher.socket.send('{"proposal":1}')
    await watcher.count(2)
  }
  browser.socket.close()
  await open('/ws/trading/VRTC100').closed
}

/** Upstream ends the sockets of the feed, and refuses new ones. */
function loseFeed({ upstream }: ControlsWorld, feeds: Set<WebSocket>): void {
  upstream.onUpgrade = (request, socket, head) => {
    if (request.url?.includes('public') !== true) upstream.accept(request, socket, head)
    else socket.end('HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n')
  }
  for (const socket of feeds) socket.terminate()
  feeds.clear()
}

/** Tokens that are refreshed, and a provider that then fails so often that it is left alone. */
async function refreshes(world: ControlsWorld): Promise<void> {
  const { provider } = world
  const usual = provider.behaviour
  provider.behaviour = tokens({ expires_in: 0.001, refresh_token: 'refresh' })
  const browsers = []
  for (let count = 0; count < 6; count++) browsers.push((await world.user('expiring')).browser)
  const refused = []
  for (let count = 0; count < 4; count++) {
    const access_token = `refused-${count}`
    provider.behaviour = tokens({ access_token, expires_in: 0.001, refresh_token: access_token })
    refused.push((await world.user(access_token)).browser)
  }
  provider.behaviour = tokens({ expires_in: 0.001, refresh_token: 'refresh' })
  await browsers[0]?.fetch(ACCOUNTS, { headers: { 'x-csrf': '1' } })
  provider.behaviour = json({ error: 'interaction_required' }, 400)
  for (const browser of refused) await browser.fetch(ACCOUNTS, { headers: { 'x-csrf': '1' } })
  provider.behaviour = html(503)
  for (const browser of [...browsers, ...browsers]) await browser.fetch(ACCOUNTS, { headers: { 'x-csrf': '1' } })
  provider.behaviour = usual
}

/** Logins that fail, sign-ups of partners, a logout. */
async function logins(world: ControlsWorld): Promise<void> {
  const { provider, server } = world
  const usual = provider.behaviour
  for (const behaviour of [html(503), json({ error: 'invalid_scope' }, 400)]) {
    provider.behaviour = behaviour
    await world.user('nobody')
  }
  provider.behaviour = usual
  await fetch(`${server.url}/AUTH/LOGIN`, { redirect: 'manual' })
  await fetch(`${server.url}/auth/logout`, {
    method: 'POST',
    headers: { 'x-csrf': '1', origin: 'https://elsewhere.example' },
  })
  for (const link of [COMPLETE_LINK, '/auth/signup?utm_source=CU1.']) {
    await (await startLogin({ server, browser: new JarBrowser() }, link)).finish()
  }
  const leaving = await world.user('leaving')
  await leaving.logOut()
}

/** Orders are paused, tried, and go on. */
async function pauses(world: ControlsWorld, name: string): Promise<void> {
  const [server] = world.servers
  const user = await world.user(name)
  const { browser } = await world.trade(user, server)
  await control(server, 'PUT', '/notice', { message: 'Prices are late.' })
  await pause(server)
  await user.order({ at: server })
  browser.socket.send('{"buy":"abc","price":1,"req_id":1}')
  await browser.count(1)
}

/** Redis is full, and then does not respond. */
async function faultsOfRedis(world: ControlsWorld): Promise<void> {
  const { server, redis } = world
  const store = await world.storeClient()
  await store.configSet({ maxmemory: '1', 'maxmemory-policy': 'noeviction' })
  await new JarBrowser().navigate(`${server.url}/auth/login`)
  await store.configSet({ maxmemory: '100mb' })
  redis?.process.kill('SIGSTOP')
  await new JarBrowser().navigate(`${server.url}/auth/login`)
  redis?.process.kill('SIGCONT')
  await until(async () => (await fetch(`${server.opsUrl}/readyz`)).ok, 'Redis is back')
}
