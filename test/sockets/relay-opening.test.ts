import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { test, type Test } from 'tap'
import { WebSocketServer } from 'ws'
import { CLOSE, type CloseStatus } from '../../src/sockets/close-codes.ts'
import { NotStarted } from '../../src/upstream/exchange.ts'
import { relayRoutes } from '../../src/sockets/relay/relay-routes.ts'

const SESSION = { key: 'key', record: { accessToken: 'token', subject: 'user' } }
const NEWER = { key: 'key', record: { accessToken: 'newer', subject: 'user' } }
const ok = (url: string) => ({ is: 'answered', response: { status: 200, headers: {}, body: JSON.stringify({ url }) } })
const status = (code: number) => ({ is: 'answered', response: { status: code, headers: {}, body: '' } })

type Route = { preHandler(request: object, reply: object): Promise<void> }

/** The routes of relays, whose upstream is a server here, and all else what a test says. */
async function routes(t: Test, isShared = false) {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  await once(server, 'listening')
  t.teardown(() => {
    for (const client of server.clients) client.terminate()
    server.close()
  })
  const wsUrl = `ws://127.0.0.1:${(server.address() as AddressInfo).port}`
  const world = {
    log: [] as unknown[],
    answers: [ok(`${wsUrl}/demo`)] as object[],
    authorized: { is: 'authorized', session: SESSION } as object,
    reread: { is: 'live', session: SESSION } as object,
    renewed: { is: 'authorized', session: NEWER } as object,
    verdict: { is: 'allowed' } as object,
    permits: { process: true, session: true },
  }
  const opened: unknown[] = []
  server.on('connection', (_, { url }) => opened.push(url))
  const permit = (name: 'process' | 'session') => {
    world.log.push(name)
    return world.permits[name] ? () => world.log.push(`${name} released`) : undefined
  }
  const found = new Map<string, Route>()
  const fastify = { get: (path: string, route: Route) => found.set(path, route) }
  const deps = {
    config: {
      relay: { wsUrl, otpHosts: [], otpUrlPointer: '/url', maxUpstreamMessageBytes: 1000 },
      feed: { isShared },
      upstream: {},
    },
    clients: {
      oneTimeUrls: {
        exchange: async ({ headers, path, subject, source, conditions }: Record<string, unknown>) => {
          world.log.push([path, (headers as string[]).find((value) => value.startsWith('Bearer')), subject])
          ;(source as () => void)()
          ;(conditions as { session(): void }).session()
          return world.answers.shift()
        },
      },
    },
    callLimit: { count: (key: string) => (world.log.push(`count ${key}`), world.verdict) },
    controls: undefined,
    sessions: {
      authorize: async () => world.authorized,
      watch: () => () => world.log.push('unwatched'),
      reread: async () => (world.log.push('reread'), world.reread),
      isCurrent: () => true,
      noteAccepted: () => world.log.push('accepted'),
      renewAfterRefusal: async (_: unknown, mayRenew: boolean) => (world.log.push(`renew ${mayRenew}`), world.renewed),
    },
    caps: {
      acquireProcess: () => permit('process'),
      acquireSession: async () => permit('session'),
      allowsHandshake: () => true,
      acquireUnreserved: () => () => undefined,
      acquireAddress: () => () => undefined,
    },
    registry: { isClosing: false, add: () => () => undefined },
    metrics: { relayRefusals: { inc: ({ reason }: { reason: string }) => world.log.push(reason) } },
    returns: { refused: (key: string, close: CloseStatus) => (world.log.push(`returns ${key}`), close) },
  }
  await relayRoutes(fastify as never, deps as never)
  const warned = (fields: object, text: string): unknown => world.log.push(text, { ...fields })
  /** The kind of the socket that a request has opened; undefined if none. */
  const open = async (path: string, accountId = 'VRTC1') => {
    const socket = {
      once: () => socket,
      off: () => socket,
      destroyed: false,
      readableEnded: false,
      destroy: () => undefined,
    }
    const request = {
      raw: { socket },
      params: { accountId },
      headers: {},
      ip: '10.0.0.1',
      id: 'request',
      log: { error: warned, warn: warned },
    } as { handshake?: { kind: string; isOver: boolean; end(close: CloseStatus): void } }
    await found.get(path)?.preHandler(request, {})
    const { handshake } = request
    const kind = handshake?.isOver === false ? handshake.kind : undefined
    handshake?.end(CLOSE.restarting)
    return kind
  }
  const trading = (accountId?: string) => open('/ws/trading/:accountId', accountId)
  return { world, opened, wsUrl, found, open, trading, logged: () => world.log.splice(0) }
}

const asked = (token: string) => ['/trading/v1/options/accounts/VRTC1/otp', `Bearer ${token}`, 'subject:user']

await test('market data has a relay of its own unless browsers share it', async (t) => {
  const own = await routes(t)
  t.same([...own.found.keys()], ['/ws/public', '/ws/trading/:accountId'])
  t.equal(await own.open('/ws/public'), 'public')
  t.same(own.opened, ['/trading/v1/options/ws/public'])
  t.same([...(await routes(t, true)).found.keys()], ['/ws/trading/:accountId'])
})

await test('a trading socket takes its permits, counts a call, and opens the one-time URL of its account', async (t) => {
  const { world, opened, trading, logged, wsUrl } = await routes(t)
  t.equal(await trading(), 'demo')
  t.same(logged().slice(0, 6), ['process', 'session', 'count key', asked('token'), 'accepted', 'reread'])
  world.answers = [ok(`${wsUrl}/ws/real`)]
  t.equal(await trading(), 'real')
  world.answers = [ok(`${wsUrl}/other`)]
  t.equal(await trading(), 'trading')
  t.same(opened, ['/demo', '/ws/real', '/other'])
  await t.rejects(trading('not/an/id'), { code: 'not_found' })
})

await test('a trading socket without a permit, a session or a call left is refused before upstream is asked', async (t) => {
  for (const [change, reason] of [
    [{ permits: { process: false, session: true } }, 'too_many_relays'],
    [{ permits: { process: true, session: false } }, 'too_many_relays'],
    [{ authorized: { is: 'anonymous' } }, 'login_required'],
    [{ verdict: { is: 'refused', retryAfterSeconds: 7 } }, 'rate_limited'],
  ] as const) {
    const { world, trading, logged } = await routes(t)
    Object.assign(world, change)
    t.equal(await trading(), undefined)
    const log = logged()
    t.ok(log.includes(reason), reason)
    t.notOk(log.some(Array.isArray))
  }
})

await test('a refused bearer is renewed once, and a changed session is read again', async (t) => {
  const { world, wsUrl, trading, logged } = await routes(t)
  world.answers = [status(401), ok(`${wsUrl}/demo`)]
  t.equal(await trading(), 'demo')
  t.same(logged().slice(3, 7), [asked('token'), 'renew true', asked('newer'), 'accepted'])
  world.answers = [status(401), status(401)]
  let renewals = 0
  Object.defineProperty(world, 'renewed', {
    get: () => (renewals++ === 0 ? { is: 'authorized', session: NEWER } : { is: 'ended' }),
  })
  t.equal(await trading(), undefined)
  const log = logged()
  t.same(log.slice(3, 7), [asked('token'), 'renew true', asked('newer'), 'renew false'])
  t.ok(log.includes('session_expired'))
})

await test('a one-time URL that upstream refuses, or the budget has no room for, closes the socket with the reason', async (t) => {
  for (const [answer, reason, isAccepted] of [
    [status(404), 'not_found', true],
    [status(500), 'upstream_error', false],
    [{ is: 'overBudget', limited: 'user', retryAfterMs: 10 }, 'upstream_limit', false],
    [{ is: 'overBudget', limited: 'all', retryAfterMs: 10 }, 'upstream_budget', false],
  ] as const) {
    const { world, trading, logged } = await routes(t)
    world.answers = [answer]
    t.equal(await trading(), undefined)
    const log = logged()
    t.ok(log.includes(reason), reason)
    t.equal(log.includes('accepted'), isAccepted)
    t.ok(log.includes('returns key'), 'the page may be told when to come back')
    const isLogged = log.some((entry) => entry === 'no one-time URL for a relay')
    t.equal(isLogged, 'response' in answer)
  }
})

await test('a session that has ended while upstream was opened gets no socket', async (t) => {
  const { world, trading, logged } = await routes(t)
  world.reread = { is: 'none' }
  t.equal(await trading(), undefined)
  t.ok(logged().includes('session_expired'))
})

await test('a request that was not sent because the session has changed is made again for the session as it is', async (t) => {
  const { world, wsUrl, trading, logged } = await routes(t)
  const stale = { is: 'unreachable', cause: Object.create(NotStarted.prototype) as Error }
  world.answers = [stale, ok(`${wsUrl}/demo`)]
  world.reread = { is: 'live', session: NEWER }
  t.equal(await trading(), 'demo')
  t.same(logged().slice(3, 6), [asked('token'), 'reread', asked('newer')])
  world.answers = [stale]
  world.reread = { is: 'none' }
  t.equal(await trading(), undefined)
  const log = logged()
  t.ok(log.includes('session_expired'))
  t.ok(log.includes('unwatched'), 'the watch on the session has begun, and ends')
})
