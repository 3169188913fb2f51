import type { Test } from 'tap'
import type { WebSocket } from 'ws'
import type { BrowserSocket } from '../browser/browser-socket.ts'
import { IDENTITY, OPS_TOKEN } from '../login/identity.ts'
import { scripted, type TokenEndpoint } from '../login/token-endpoint.ts'
import type { TestServer } from '../server/test-server.ts'
import { until } from '../time/until.ts'
import { answerJson } from '../upstream/scripted-upstream.ts'
import { TRADING, type User } from '../user.ts'
import { startWorld, type World } from '../world.ts'

/** What `GET /controls` answers. */
interface ShownControls {
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
  signal?: AbortSignal,
): Promise<{ status: number; json: Record<string, unknown>; headers: Headers }> {
  const response = await fetch(`${opsUrl}/controls${path}`, {
    method,
    ...(signal && { signal }),
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
export interface ControlsWorld extends Omit<World<'scripted', TokenEndpoint>, 'servers'> {
  /** Three, which may be the same one. */
  readonly servers: readonly [TestServer, TestServer, TestServer]
  /** Orders that have reached upstream, by their bodies. */
  readonly orders: string[]
  /** An open trading socket, and upstream's end of it. Two at the same moment might get each other's. */
  readonly trade: (
    user: User,
    at: { readonly port: number },
  ) => Promise<{ browser: BrowserSocket; peer: WebSocket; seen: string[] }>
  /** Resolves once all instances obey the same version. */
  readonly agreed: (version: unknown, servers?: readonly TestServer[]) => Promise<void>
}

/** Starts three instances on one Redis, unless it is told otherwise. They end with the test. */
export async function controlsWorld(
  t: Test,
  {
    settings,
    instances = 3,
    redis = true,
  }: { settings?: Record<string, string>; instances?: 1 | 3; redis?: boolean } = {},
): Promise<ControlsWorld> {
  const world = await startWorld(t, {
    provider: scripted,
    upstream: 'scripted',
    redis,
    instances,
    settings: { ...IDENTITY, ...settings },
  })
  const { server, upstream } = world
  const [, second = server, third = server] = world.servers
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
  return {
    ...world,
    servers: [server, second, third],
    orders,
    async trade({ socket }, at) {
      const browser = await socket(TRADING, { at }).opened()
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
}
