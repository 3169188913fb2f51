import type { Test } from 'tap'
import { nextEvent, until } from '../time/until.ts'
import { around, type Scenario } from './scrapes.ts'
import { PUBLIC, TRADING } from '../user.ts'
import { startWorld, type World, RELAY } from '../world.ts'

const SETTINGS = { PUBLIC_HANDSHAKES_PER_MINUTE: '0', MAX_PUBLIC_RELAYS_PER_IP: '100' }
/** Sockets that fail in a minute: more than a single page tries. */
const TRIES = 4
/** Sockets of others, which stay open. */
const OTHERS = 12
const MESSAGE = 'x'.repeat(10_000)

/** Upstream refuses or loses sockets of one kind, or of all. */
export async function failingSocketScenarios(t: Test): Promise<Scenario[]> {
  const world = await startWorld(t, { ...RELAY, settings: SETTINGS })
  const { upstream } = world
  const refused = async (path: string, count = TRIES): Promise<void> => {
    for (let tries = 0; tries < count; tries++) await (await world.socket(path).opened()).closed
  }
  const when = async (name: string, raises: readonly string[], happen: () => Promise<unknown>): Promise<Scenario> => {
    const { onOtp } = upstream
    const scenario = await around(world.server, name, raises, happen)
    upstream.onOtp = onOtp
    upstream.onUpgrade = undefined
    return scenario
  }
  const upgradesGet = (status: number): void => {
    upstream.onUpgrade = (_request, socket) => void socket.end(`HTTP/1.1 ${status} No\r\nContent-Length: 0\r\n\r\n`)
  }
  const oneTimeUrlsGet = (status: number): void => {
    upstream.onOtp = (_request, response) => void response.writeHead(status).end()
  }
  const failing = [
    await when('upstream refuses every public socket', ['BffSocketsFailing'], () => {
      upgradesGet(503)
      return refused(PUBLIC)
    }),
    await when('upstream forbids every public socket', ['BffSocketsFailing', 'BffSocketsTurnedAway'], () => {
      upgradesGet(403)
      return refused(PUBLIC)
    }),
    await when('upstream answers 429 to every public socket', ['BffSocketsTurnedAway'], () => {
      upgradesGet(429)
      return refused(PUBLIC)
    }),
    await when('upstream refuses every trading socket', ['BffSocketsFailing'], () => {
      upgradesGet(503)
      return refused(TRADING)
    }),
    await when('upstream forbids every account', ['BffSocketsTurnedAway'], () => {
      oneTimeUrlsGet(403)
      return refused(TRADING)
    }),
  ]
  const others = Array.from({ length: OTHERS }, () => world.socket(PUBLIC).opened())
  await Promise.all(others)
  failing.push(
    await when('upstream gives no one-time URL, and public sockets are open', ['BffSocketsFailing'], () => {
      oneTimeUrlsGet(500)
      return refused(TRADING)
    }),
    await when('one page tries again and again, and others are served', [], () => {
      upgradesGet(503)
      return refused(PUBLIC, 2)
    }),
    await when('one page of a night fails to open a socket now and then', [], () => {
      oneTimeUrlsGet(500)
      return refused(TRADING, 1)
    }),
  )
  return [...failing, { ...(await when('upstream restarts once', [], () => restart(world))), happensOnce: true }]
}

/** So many browsers read slowly that the slowest are closed. */
export async function memoryScenario(t: Test): Promise<Scenario> {
  const limits = { MAX_BUFFERED_BYTES: '200000', MAX_WAITING_BYTES: '1048576', SLOW_CONSUMER_SECONDS: '3600' }
  const world = await startWorld(t, { ...RELAY, settings: { ...SETTINGS, ...limits } })
  const raises = ['BffSlowConsumers', 'BffSocketsClosedForMemory']
  return around(world.server, 'browsers read slowly, and memory is short', raises, async () => {
    const slow = []
    for (let count = 0; count < 8; count++) slow.push(await world.joined(PUBLIC))
    for (const { client, peer } of slow) {
      client.socket.pause()
      for (let message = 0; message < 4000; message++) peer.send(MESSAGE)
    }
    await until(
      async () => ((await world.metric('bff_relay_closed_for_memory_total')).get('kind="public"') ?? 0) >= 3,
      'some are closed',
    )
  })
}

/** Upstream ends all sockets at the same moment. */
async function restart({ upstream }: World<'scripted'>): Promise<void> {
  const peers = await Promise.all(Array.from({ length: OTHERS }, () => upstream.socket()))
  const ended = peers.map((peer) => nextEvent(peer, 'close'))
  for (const peer of peers) peer.terminate()
  await Promise.all(ended)
}
