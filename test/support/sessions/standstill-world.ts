import { Agent, request as httpRequest, type IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { control, controlsWorld, pause, type ControlsWorld } from '../controls/controls-world.ts'
import { testCluster } from '../redis/topologies.ts'
import type { RedisProcess } from '../../../sandbox/redis-process.ts'
import { ready, serverProcess } from '../server/server-process.ts'
import { nextEvent, until } from '../time/until.ts'
import { type User, TRANSFER } from '../user.ts'

const SUSPENDED = new URL('../time/suspended-machine.ts', import.meta.url)

export const BUY = '{"buy":"a proposal","price":1}'
const PING = '{"ping":1}'
/** Shorter than the time for which a process may stand still unnoticed, so that what is given then is given in the dark. */
const BEFORE_ORDER_MS = 400
const AFTER_ORDER_MS = 150
/** All instances obey a pause within this time. */
const OBEYED_MS = 1000

/** How the instance that stands still is run. */
export interface StandstillOptions {
  /** Whether operators can pause orders, so that the controls are read several times a second. */
  readonly hasOperators: boolean
  readonly isCluster?: boolean
  /** Whether its monotonic clock stands still, too. */
  readonly isSuspended?: boolean
  readonly settings?: Record<string, string>
}

/** A user who trades at the instance that stands still, by an open socket and over a connection that is warm. */
export interface Trader {
  readonly user: User
  readonly socket: Awaited<ReturnType<ControlsWorld['trade']>>
  /** An order by REST. Resolves with the status of its answer, 0 without one. */
  order(body: string, headers?: Record<string, string>): Promise<number>
}

/** An instance that can be stopped, and another one beside it that goes on. */
export interface StandstillWorld extends ControlsWorld {
  /** All servers of Redis. */
  readonly nodes: readonly RedisProcess[]
  trader(name: string): Promise<Trader>
  stop(): void
  goOn(): void
  /** Lifts the pause of all orders. Resolves once all instances obey. */
  lift(): Promise<void>
}

/** Starts one that ends with the test. */
export async function standstillWorld(t: Test, options: StandstillOptions): Promise<StandstillWorld> {
  const { isCluster = false, isSuspended = false, hasOperators, settings } = options
  const cluster = isCluster ? await testCluster(t) : undefined
  const own = { ...settings, ...(cluster && { REDIS_URL: cluster.url, IDEMPOTENCY_REPLICAS: '0' }) }
  const world = await controlsWorld(t, { instances: 1, redis: !isCluster, settings: own })
  const { server } = world
  const nodeOptions = isSuspended ? ['--import', fileURLToPath(SUSPENDED)] : []
  const stopped = await serverProcess(
    t,
    {
      ...world.settings,
      PUBLIC_URL: server.url,
      ...own,
      ...(cluster === undefined && { REDIS_URL: world.redis?.url ?? '' }),
      ...(!hasOperators && { OPS_TOKEN: '' }),
    },
    { nodeOptions },
  )
  t.ok(await ready(stopped))
  const { child, port } = stopped
  return {
    ...world,
    nodes: cluster?.nodes ?? (world.redis === undefined ? [] : [world.redis]),
    stop: () => void child.kill('SIGSTOP'),
    goOn: () => void child.kill('SIGCONT'),
    async trader(name) {
      const user = await world.user(name)
      const socket = await world.trade(user, { port })
      const agent = new Agent({ keepAlive: true, maxSockets: 1 })
      t.teardown(() => agent.destroy())
      const order: Trader['order'] = async (body, more = {}) => {
        const headers = {
          cookie: user.cookie,
          'x-csrf': '1',
          'content-length': String(Buffer.byteLength(body)),
          ...more,
        }
        const outgoing = httpRequest({ agent, host: '127.0.0.1', port, method: 'POST', path: TRANSFER, headers })
        outgoing.on('error', () => undefined).end(body)
        const [response] = (await nextEvent(outgoing, 'response')) as [IncomingMessage]
        await text(response)
        return response.statusCode ?? 0
      }
      t.equal(await order(`before ${name}`), 200)
      return { user, socket, order }
    },
    async lift() {
      const { json } = await control(server, 'DELETE', '/orders')
      await world.agreed(json['version'])
    },
  }
}

/** What became of what a user gave in the dark. */
interface Fate {
  readonly statuses: number[]
  /** What reached upstream although it must not. */
  readonly sent: string[]
}

/**
 * Stops the instance. The user's socket has a ping waiting, the user logs out elsewhere, and orders a moment later by socket and
 * by REST; then the instance goes on.
 * @param ways by which the user orders
 */
async function orderInTheDark(
  world: StandstillWorld,
  trader: Trader,
  ways: readonly ('socket' | 'call')[],
): Promise<Fate> {
  const { orders } = world
  const { browser, seen } = trader.socket
  const [seenBefore, ordersBefore] = [seen.length, orders.length]
  world.stop()
  if (ways.includes('socket')) browser.socket.send(PING)
  if ((await trader.user.logOut()).status !== 204) throw new Error('the logout failed')
  await delay(BEFORE_ORDER_MS)
  if (ways.includes('socket')) browser.socket.send(BUY)
  const call = ways.includes('call') ? trader.order('in the dark') : undefined
  await delay(AFTER_ORDER_MS)
  world.goOn()
  await browser.closed
  const status = await call
  return {
    statuses: status === undefined ? [] : [status],
    sent: [...seen.slice(seenBefore), ...orders.slice(ordersBefore)],
  }
}

/** Has this many users order in the dark, each by socket, by REST, and by both. Nothing may be sent. */
export async function ordersInTheDark(t: Test, options: StandstillOptions, tries: number): Promise<void> {
  const world = await standstillWorld(t, options)
  let leaked = 0
  const statuses = new Map<number, number>()
  for (let each = 0; each < tries; each++) {
    for (const ways of [['socket'], ['call'], ['socket', 'call']] as const) {
      const trader = await world.trader(`CR${each}-${ways.join('-')}`)
      const fate = await orderInTheDark(world, trader, ways)
      t.same(fate.sent, [], ways.join(' and '))
      if (fate.sent.length > 0) leaked++
      for (const status of fate.statuses) statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }
  }
  t.comment(`${leaked} of ${3 * tries} tries sent something; answers: ${JSON.stringify([...statuses])}`)
  t.ok([...statuses.keys()].every((status) => status === 401 || status === 503))
}

/** Has this many users order while all orders are paused. The pause was set while the instance stood still. */
export async function ordersDuringPauses(t: Test, isSuspended: boolean, tries: number): Promise<void> {
  const world = await standstillWorld(t, { hasOperators: true, isSuspended })
  const { server, orders } = world
  for (let each = 0; each < tries; each++) {
    const trader = await world.trader(`CR${each}`)
    const { browser, seen } = trader.socket
    const before = orders.length
    world.stop()
    t.equal((await pause(server)).status, 200)
    await delay(OBEYED_MS)
    const call = trader.order('in the dark')
    browser.socket.send(BUY)
    await delay(AFTER_ORDER_MS)
    world.goOn()
    t.equal(await call, 503)
    await until(() => browser.received.length > 0 || seen.length > 0, 'the order is answered, or sent')
    t.same([...seen, ...orders.slice(before)], [])
    t.match(browser.texts[0], 'OrdersPaused')
    browser.socket.terminate()
    await world.lift()
  }
}
