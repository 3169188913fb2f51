import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Test } from 'tap'
import { WebSocketServer } from 'ws'
import { CLOSE, type CloseStatus } from '../../../src/sockets/close-codes.ts'
import type { Handshake } from '../../../src/sockets/handshake.ts'
import { relayRoutes } from '../../../src/sockets/relay/relay-routes.ts'
import { Peer } from './relay-alone.ts'

const SESSION = { key: 'key', record: { accessToken: 'token', subject: 'user' } }
export const NEWER = { key: 'key', record: { accessToken: 'newer', subject: 'user' } }

/** Upstream's answer with a one-time URL. */
export const ok = (url: string): object => ({
  is: 'answered',
  response: { status: 200, headers: {}, body: JSON.stringify({ url }) },
})

const nothing = (): void => undefined

type Request = { handshake?: Handshake }
type Route = { preHandler(request: object, reply: object): Promise<void> }

/** The routes of relays, whose upstream is a server here, and all else what a test says. */
export async function relayRoutesOf(
  t: Test,
  { isShared = false, host = '127.0.0.1', deps: more = {}, admits = (): boolean => true } = {},
) {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', verifyClient: admits })
  await once(server, 'listening')
  t.teardown(() => {
    for (const client of server.clients) client.terminate()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const wsUrl = `ws://${host}:${port}`
  const world = {
    log: [] as unknown[],
    answers: [ok(`${wsUrl}/demo`)] as object[],
    authorized: { is: 'authorized', session: SESSION } as object,
    reread: { is: 'live', session: SESSION } as object,
    renewed: { is: 'authorized', session: NEWER } as object,
    verdict: { is: 'allowed' } as object,
    cookieKey: 'key' as string | undefined,
    permits: { process: true, opening: true, session: true },
    asked: (): void => undefined,
  }
  const opened: unknown[] = []
  server.on('connection', (_, { url }) => opened.push(url))
  const permit = (name: 'process' | 'session') => {
    world.log.push(name)
    return world.permits[name] ? () => world.log.push(`${name} released`) : undefined
  }
  const warned = (fields: object, text: string): unknown => world.log.push(text, { ...fields })
  const log = { error: warned, warn: warned, info: warned, child: (fields: object) => (world.log.push(fields), log) }
  const found = new Map<string, Route>()
  const fastify = { get: (path: string, route: Route) => found.set(path, route) }
  const deps = {
    config: {
      relay: {
        wsUrl,
        otpHosts: [`other.test:${port}`],
        otpUrlPointer: '/url',
        maxUpstreamMessageBytes: 1000,
        maxBufferedBytes: 1000,
        slowConsumerMs: 1000,
      },
      feed: { isShared },
      upstream: {},
    },
    clients: {
      oneTimeUrls: {
        exchange: async ({ headers, path, subject, source, conditions }: Record<string, unknown>) => {
          world.log.push([path, (headers as string[]).find((value) => value.startsWith('Bearer')), subject])
          const isWanted = (conditions as { session(): boolean }).session()
          if (!isWanted || (source as () => string)() === undefined)
            throw new Error('it is not wanted, or nobody is to blame')
          world.asked()
          return world.answers.shift()
        },
      },
    },
    callLimit: { count: async (key: string) => (world.log.push(`count ${key}`), world.verdict) },
    controls: undefined,
    log,
    sessions: {
      cookie: { key: () => world.cookieKey },
      authorize: async () => world.authorized,
      watch: () => () => world.log.push('unwatched'),
      reread: async () => {
        world.log.push('reread')
        await nextTurn()
        return world.reread
      },
      isCurrent: () => true,
      noteAccepted: () => world.log.push('accepted'),
      renewAfterRefusal: async (_: unknown, mayRenew: boolean) => (world.log.push(`renew ${mayRenew}`), world.renewed),
    },
    caps: {
      acquireProcess: () => permit('process'),
      acquireOpening: () => (world.permits.opening ? nothing : undefined),
      acquireSession: async () => permit('session'),
      allowsHandshake: () => true,
      acquireUnreserved: () => () => undefined,
      acquireAddress: () => () => undefined,
    },
    registry: { isClosing: false, add: () => () => undefined, rest: nothing },
    metrics: {
      relayRefusals: { inc: ({ reason }: { reason: string }) => world.log.push(reason) },
      relayCloses: { inc: (labels: object) => world.log.push(labels) },
      relays: { inc: () => undefined, dec: () => undefined },
      requests: { add: () => undefined },
      relayTraffic: { to_browser: { messages: 0, bytes: 0 }, to_upstream: { messages: 0, bytes: 0 } },
      countRelayOperation: () => undefined,
    },
    returns: {
      refused: (key: string, close: CloseStatus) => (
        world.log.push(`returns ${key}`, close),
        { ...close, retryAfterSeconds: 5 }
      ),
      closed: (close: CloseStatus) => ({ ...close, retryAfterSeconds: 9 }),
      join: () => (world.log.push('joins'), () => world.log.push('leaves')),
    },
    ...more,
  }
  await relayRoutes(fastify as never, deps as never)
  /** Begins a socket, and resolves once its handshake has an outcome. */
  const begin = (path: string, accountId: string | undefined) => {
    const browser = new Peer()
    // A frame has two bytes before its message, which is short.
    const write = (frame: Buffer): unknown => browser.got.push(frame.subarray(2).toString())
    const wire = { readableEnded: false, destroy: nothing, cork: nothing, uncork: nothing, write }
    const socket = Object.assign(browser.wire, wire)
    const request: Request & object = {
      raw: { socket },
      params: { accountId },
      headers: {},
      ip: '10.0.0.1',
      id: 'request',
      routeOptions: {},
      log,
    } as never
    const handled = found.get(path)?.preHandler(request, { raw: { detachSocket: () => undefined }, elapsedTime: 1 })
    const leave = (): void => void socket.emit('close')
    return { browser, request, handled, leave }
  }
  /** The kind of the socket that a request has opened; undefined if none. */
  const open = async (path: string, accountId: string | undefined = 'VRTC1') => {
    const { request, handled } = begin(path, accountId)
    await handled
    const { handshake } = request
    const kind = handshake?.isOver === false ? handshake.kind : undefined
    handshake?.end(CLOSE.restarting)
    return kind
  }
  const trading = (accountId?: string) => open('/ws/trading/:accountId', accountId)
  /** Opens a socket, and joins a browser to it. */
  const join = async (path = '/ws/trading/:accountId') => {
    const { browser, request, handled } = begin(path, 'VRTC1')
    await handled
    request.handshake?.join(browser.open.socket)
    return browser
  }
  return { server, world, opened, wsUrl, found, begin, open, trading, join, logged: () => world.log.splice(0) }
}
