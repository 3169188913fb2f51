import type { Test } from 'tap'
import type { WebSocket } from 'ws'
import { freePort } from '../../../sandbox/listening.ts'
import { BrowserSocket } from '../browser/browser-socket.ts'
import { identityWorld, OPS_TOKEN, type IdentityWorld } from '../login/identity-world.ts'
import { testServer, type TestServer } from '../server/world.ts'
import { until } from '../time/until.ts'
import { sendTo, type Answer } from '../upstream/api-world.ts'
import { answerJson } from '../upstream/scripted-upstream.ts'

const TRADING = '/ws/trading/VRTC100'
const TRANSFER = '/api/payment-agents/v1/transfer'
const ACCOUNTS = '/api/trading/v1/options/accounts'

/** What `GET /controls` answers. */
export interface ShownControls {
  readonly version: number
  readonly orders: Record<string, unknown> | null
  readonly subjects: readonly Record<string, unknown>[]
  readonly notice: Record<string, unknown> | null
  readonly instance: string
  readonly instances: readonly { instance: string; version: number; seen_at: number }[]
}

/** A request of an operator to `/controls`. */
export async function control(
  { opsUrl }: Pick<TestServer, 'opsUrl'>,
  method: 'GET' | 'PUT' | 'DELETE',
  path: string,
  body?: unknown,
  token: string = OPS_TOKEN,
): Promise<{ status: number; json: Record<string, unknown>; headers: Headers }> {
  const response = await fetch(`${opsUrl}/controls${path}`, {
    method,
    headers: { authorization: `Bearer ${token}` },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const { status, headers } = response
  return { status, headers, json: (await response.json()) as Record<string, unknown> }
}

export const pause = (server: Pick<TestServer, 'opsUrl'>, more: object = {}) =>
  control(server, 'PUT', '/orders', { paused: true, ...more })

export async function shown(server: Pick<TestServer, 'opsUrl'>): Promise<ShownControls> {
  return (await control(server, 'GET', '')).json as unknown as ShownControls
}

/** Instances whose operators may pause orders, and users. */
export interface ControlsWorld extends IdentityWorld {
  readonly servers: readonly [TestServer, TestServer, TestServer]
  /** Another instance. */
  readonly instance: (settings?: Record<string, string>) => Promise<TestServer>
  /** Orders that have reached upstream, by their bodies. */
  readonly orders: string[]
  /** Logs a user in. @returns the Cookie header */
  readonly user: (name: string) => Promise<string>
  readonly order: (
    server: TestServer,
    cookie: string,
    body?: string,
    headers?: Record<string, string>,
  ) => Promise<Answer>
  readonly read: (server: TestServer, cookie: string) => Promise<Answer>
  /** An open trading socket, and upstream's end of it. Two at the same moment might get each other's. */
  readonly trade: (
    server: TestServer,
    cookie: string,
  ) => Promise<{ browser: BrowserSocket; peer: WebSocket; seen: string[] }>
  /** Resolves once all instances obey the same version. */
  readonly agreed: (version: unknown, servers?: readonly TestServer[]) => Promise<void>
}

function send(
  at: TestServer,
  method: string,
  path: string,
  cookie: string,
  body?: string,
  headers = {},
): Promise<Answer> {
  return sendTo(at.port, method, path, {
    headers: { cookie, 'x-csrf': '1', ...headers },
    ...(body !== undefined && { body }),
  })
}

/** Starts three instances on one Redis that end with the test. */
export async function controlsWorld(
  t: Test,
  options: { settings?: Record<string, string>; instances?: 1 | 3; redis?: boolean } = {},
): Promise<ControlsWorld> {
  const { instances = 3, redis = true } = options
  const world = await identityWorld(t, { redis, ...(options.settings && { settings: options.settings }) })
  const { server, settings, upstream } = world
  const instance = async (more: Record<string, string> = {}): Promise<TestServer> =>
    testServer(t, { ...settings, PUBLIC_URL: server.url, ...more, PORT: String(await freePort()) })
  const others = instances === 1 ? [server, server] : [await instance(), await instance()]
  const [second = server, third = server] = others
  const orders: string[] = []
  const { onRest } = upstream
  upstream.onRest = (request, response) => {
    if (request.method === 'GET') return onRest(request, response)
    let body = ''
    request.on('data', (piece: Buffer) => (body += piece.toString()))
    request.on('end', () => {
      orders.push(body)
      answerJson(response, 200, { data: { made: body } })
    })
  }
  const more: Omit<ControlsWorld, keyof IdentityWorld> = {
    servers: [server, second, third],
    instance,
    orders,
    async user(name) {
      const { browser } = await world.logIn(name)
      return browser.cookieHeader(new URL(server.url), new URL(server.url))
    },
    order: (at, cookie, body = '{"amount":1}', headers) => send(at, 'POST', TRANSFER, cookie, body, headers),
    read: (at, cookie) => send(at, 'GET', ACCOUNTS, cookie),
    async trade(at, cookie) {
      const browser = new BrowserSocket(`ws://127.0.0.1:${at.port}${TRADING}`, { origin: server.url, cookie })
      t.teardown(() => browser.socket.terminate())
      await browser.opened()
      const peer = await upstream.socket()
      const seen: string[] = []
      peer.on('message', (data: Buffer) => seen.push(data.toString()))
      return { browser, peer, seen }
    },
    async agreed(version, servers = [server, second, third]) {
      for (const each of servers) {
        await until(
          async () => {
            const { instances: all } = await shown(each)
            return all.length >= new Set(servers).size && all.every((one) => one.version === version)
          },
          `all instances obey version ${String(version)}`,
        )
      }
    },
  }
  // The same object: a test may change how it answers.
  return Object.assign(world, more)
}
