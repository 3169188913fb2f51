import { test, type Test } from 'tap'
import { startUpstream, type SandboxUpstream } from '../../sandbox/upstream.ts'
import { BrowserSocket } from '../support/browser/browser-socket.ts'
import { valueOf } from '../support/telemetry/metrics.ts'
import { nobody } from '../support/sandbox/world.ts'
import { ready, serverProcess, type ServerProcess } from '../support/server/server-process.ts'
import { ALONE } from '../support/server/settings.ts'
import { until } from '../support/time/until.ts'
import { SECRETS, testRedis } from '../support/server/test-server.ts'

type Message = Record<string, unknown>

/** A browser that watches the prices of a symbol, through an instance or at the trading service itself. */
class Watcher {
  readonly client: BrowserSocket

  private constructor(client: BrowserSocket) {
    this.client = client
  }

  static async open(t: Test, url: string): Promise<Watcher> {
    const client = new BrowserSocket(url, { origin: ALONE.PUBLIC_URL })
    t.teardown(() => client.socket.terminate())
    const watcher = new Watcher(await client.opened())
    t.match(await watcher.ask({ ticks: 'R_100', subscribe: 1, req_id: 1 }), { tick: { symbol: 'R_100' } })
    return watcher
  }

  /** Sends a request. @returns the first message with its `req_id` */
  async ask(request: Message): Promise<Message> {
    this.client.socket.send(JSON.stringify(request))
    const found = (): Message | undefined => this.#messages.find(({ req_id: id }) => id === request['req_id'])
    await until(() => found() !== undefined, `a response to ${JSON.stringify(request)}`)
    return found() ?? {}
  }

  /** The id of its stream. */
  get id(): unknown {
    const [first = {}] = this.#messages
    return (first['subscription'] as Message)['id']
  }

  /** Its prices so far, in order. */
  get prices(): string[] {
    const ticks = this.#messages.flatMap(({ tick }) => (tick === undefined ? [] : [tick as Message]))
    return ticks.map(({ epoch, quote }) => `${String(epoch)} ${String(quote)}`)
  }

  /** Resolves once it has more prices than now. */
  async goesOn(): Promise<void> {
    const { length } = this.prices
    await until(() => this.prices.length > length + 2, 'prices go on')
  }

  get #messages(): Message[] {
    return this.client.texts.map((text) => JSON.parse(text) as Message)
  }
}

/** Instances of one service, and the trading service behind them. */
async function instances(t: Test): Promise<{ upstream: SandboxUpstream; one: ServerProcess; other: ServerProcess }> {
  const upstream = await startUpstream({ provider: nobody, tickMs: 50 })
  t.teardown(() => upstream.close())
  const settings = {
    ...ALONE,
    WS_URL: upstream.wsUrl,
    REDIS_URL: (await testRedis(t)).url,
    SESSION_SECRETS: SECRETS,
    PUBLIC_FEED: 'shared',
    FEED_LINGER_SECONDS: '0',
  }
  const [one, other] = await Promise.all([serverProcess(t, settings), serverProcess(t, settings)])
  for (const instance of [one, other]) t.ok(await ready(instance))
  return { upstream, one, other }
}

const at = ({ port }: ServerProcess): string => `ws://127.0.0.1:${port}/ws/public`
const streamsOf = ({ opsPort }: ServerProcess): Promise<number | undefined> =>
  valueOf(`http://127.0.0.1:${opsPort}`, 'bff_feed_streams')

await test('PUBLIC_FEED=shared on two instances: each has its own upstream socket, and what one does is nothing to the other', async (t) => {
  const { upstream, one, other } = await instances(t)
  const direct = await Watcher.open(t, `${upstream.wsUrl}/trading/v1/options/ws/public`)
  const [first, second, neighbour] = [
    await Watcher.open(t, at(one)),
    await Watcher.open(t, at(one)),
    await Watcher.open(t, at(other)),
  ]
  t.equal(upstream.sockets().public, 3, 'that of each instance, and the one without an instance')

  t.match(await neighbour.ask({ forget: first.id, req_id: 2 }), { forget: 0 }, 'the id of another instance')
  t.match(await first.ask({ forget: first.id, req_id: 2 }), { forget: 1 })
  await Promise.all([second.goesOn(), neighbour.goesOn()])
  t.match(await second.ask({ forget_all: 'ticks', req_id: 2 }), { forget_all: [second.id] })
  await until(async () => (await streamsOf(one)) === 0, 'the instance has forgotten the stream')
  t.equal(await streamsOf(other), 1)
  await neighbour.goesOn()

  for (const page of [first, second]) {
    t.match(await page.ask({ ticks: 'R_100', subscribe: 1, req_id: 3 }), { tick: {} })
    await page.goesOn()
  }
  one.child.kill('SIGTERM')
  for (const { client } of [first, second]) t.same(await client.closed, { code: 1012, reason: 'shutting_down' })
  const back = [await Watcher.open(t, at(other)), await Watcher.open(t, at(other))]
  t.equal(await one.exited, 0)
  await until(() => upstream.sockets().public === 2, 'its upstream socket is closed')
  t.equal(await streamsOf(other), 1, 'those who come back share the stream that is there')
  for (const page of [neighbour, ...back]) {
    await page.goesOn()
    const { prices } = page
    await until(() => direct.prices.includes(prices.at(-1) ?? ''), 'the trading service has sent that price')
    t.ok(direct.prices.join(' ').includes(prices.join(' ')), 'no price is missing, and none comes twice')
  }
})
