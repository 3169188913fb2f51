import type { IncomingMessage, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import type { Test } from 'tap'
import type { WebSocket } from 'ws'
import { createClient, type Client, type Message, type ServerOptions } from '../../../client/dist/client.js'
import { parseJson } from '../../../client/src/core/base/json.ts'
import { createFakeClient, type FakeServer } from '../../../client/dist/testing.js'
import { control, pause } from '../controls/controls-world.ts'
import { OPS_TOKEN } from '../login/identity.ts'
import { logIn } from '../parts.ts'
import { until } from '../time/until.ts'
import { pageOptions } from './page-client.ts'
import { TradingService } from './trading-service.ts'
import { startWorld, type World } from '../world.ts'

/** What a test says of a call or a message. */
type Answer<Body> = Body | ((message: Message) => Body | undefined)

/** What the suite for both kinds of client uses of a fake server. */
export interface DrivenServer extends Pick<FakeServer, 'logIn' | 'endSession' | 'pauseOrders'> {
  respond(method: string, path: string, answer: unknown): void
  readonly calls: readonly { readonly method: string; readonly path: string; readonly json: unknown }[]
  reply(operation: string, reply: Answer<object>): void
  push(members: Message, body: Message): void
  readonly messages: readonly { readonly message: Message }[]
  disconnect(): void
  setNetwork(state: 'up' | 'down' | 'offline'): void
}

/** A client, and a test's hands on its server. */
export interface DrivenClient {
  readonly client: Client
  readonly server: DrivenServer
}

/** A fake client. It ends with the test. */
function fakeClient(t: Test): DrivenClient {
  const client = createFakeClient()
  t.teardown(() => client.close())
  return { client, server: client.server }
}

/** A real client at a real server, in front of a scripted trading service. They end with the test. */
async function realClient(t: Test): Promise<DrivenClient> {
  const world = await startWorld(t, { upstream: 'scripted', settings: { OPS_TOKEN } })
  const network = new PageNetwork(pageOptions(world.browser, world.server.url, world.server.url))
  const client = createClient({ baseUrl: world.server.url, ...network.options })
  t.teardown(() => {
    client.close()
    network.set('up')
  })
  return { client, server: realServer(world, client, network) }
}

/** Both kinds of client. What holds for the real one has to hold for the fake one. */
export const KINDS: readonly (readonly [string, (t: Test) => DrivenClient | Promise<DrivenClient>])[] = [
  ['the real client', realClient],
  ['the fake client', fakeClient],
]

/** The network of a page that can go down. */
class PageNetwork {
  readonly options: ServerOptions
  /** The paths of calls whose response is lost on its way. */
  readonly lost = new Set<string>()
  readonly #sockets = new Set<WebSocket>()
  #isUp = true

  constructor(real: ServerOptions) {
    const { fetch: realFetch, WebSocket: Real } = real as Required<ServerOptions>
    const open = (socket: WebSocket): unknown => this.#sockets.add(socket)
    const address = (url: string): string => (this.#isUp ? url : 'ws://127.0.0.1:9')
    this.options = {
      fetch: async (url, init) => {
        if (!this.#isUp) throw new TypeError('Failed to fetch')
        const response = await realFetch(url, init)
        if (!this.#isUp || this.lost.has(new URL(url).pathname)) throw new TypeError('Failed to fetch')
        return response
      },
      WebSocket: class extends Real {
        constructor(url: string) {
          super(address(url))
          open(this as unknown as WebSocket)
        }
      },
    }
  }

  /** Whether the session socket, if there is one, is open. */
  get hasSessionSocket(): boolean | undefined {
    const socket = [...this.#sockets].findLast(({ url }) => url.endsWith('/ws/session'))
    return socket && socket.readyState === socket.OPEN
  }

  disconnect(fits: (socket: WebSocket) => boolean = () => true): void {
    for (const socket of this.#sockets) if (fits(socket)) socket.terminate()
  }

  set(state: 'up' | 'down' | 'offline'): void {
    this.#isUp = state === 'up'
    if (state === 'offline') Object.defineProperty(navigator, 'onLine', { configurable: true, value: false })
    else Reflect.deleteProperty(navigator, 'onLine')
    if (!this.#isUp) this.disconnect()
  }
}

function realServer(world: World<'scripted'>, client: Client, network: PageNetwork): DrivenServer {
  const { browser, server, upstream } = world
  const service = new TradingService(upstream)
  const answers = new Map<string, unknown>()
  const calls: DrivenServer['calls'][number][] = []
  upstream.onRest = (request, response) => void answerCall(request, response, answers, calls)
  return {
    async logIn() {
      await logIn(browser, server.url)
      await client.session.check()
    },
    async endSession() {
      await until(() => network.hasSessionSocket !== false)
      await world.logOut()
      await until(() => client.session.get().status === 'anonymous')
    },
    async pauseOrders(paused) {
      await (paused ? pause(server, paused) : control(server, 'DELETE', '/orders'))
      await client.session.check()
    },
    respond(method, path, answer) {
      answers.set(`${method} ${path}`, answer)
      if (answer instanceof Response && answer.type === 'error') network.lost.add(`/api${path}`)
    },
    calls,
    reply(operation, reply) {
      service.instead[operation] = (message, send, socket) => {
        const body = (typeof reply === 'function' ? reply(message) : reply) as Record<string, unknown> | undefined
        if (body && message['subscribe'] === 1 && !('error' in body)) service.subscribe(message, socket, body)
        else if (body) send(body)
      }
    },
    push: (members, body) => service.push(members, body),
    get messages() {
      return service.seen.map((message) => ({ message }))
    },
    disconnect: () => network.disconnect(({ url }) => !url.endsWith('/ws/session')),
    setNetwork: (state) => network.set(state),
  }
}

async function answerCall(
  request: IncomingMessage,
  response: ServerResponse,
  answers: ReadonlyMap<string, unknown>,
  calls: DrivenServer['calls'][number][],
): Promise<void> {
  const { method = '', url: path = '' } = request
  const [route = ''] = path.split('?')
  calls.push({
    method,
    path,
    json: await text(request)
      .then(parseJson)
      .catch(() => undefined),
  })
  const answer = answers.get(`${method} ${route}`) ?? {}
  const isOther = answer instanceof Response && answer.type !== 'error'
  const { status, body } = isOther ? answer.clone() : Response.json(answer instanceof Response ? {} : answer)
  response.writeHead(status, { 'content-type': 'application/json' })
  for await (const chunk of body ?? []) response.write(chunk)
  response.end()
}
