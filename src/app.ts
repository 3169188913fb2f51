import { setTimeout as delay } from 'node:timers/promises'
import fastifyCookie from '@fastify/cookie'
import type { FastifyBaseLogger, FastifyInstance } from 'fastify'
import { catalogRoutes } from './catalog/catalog-routes.ts'
import { catalog } from './catalog/catalog.ts'
import { openApiRoute } from './catalog/openapi-route.ts'
import type { Config } from './config.ts'
import { flushFailures } from './failure-log.ts'
import { Guard } from './http/guard.ts'
import { KnownPaths } from './http/known-paths.ts'
import { problemRoutes } from './http/problem-pages.ts'
import { sendProblem } from './http/send-problem.ts'
import { createServer } from './http/server.ts'
import { registerStaticPages } from './http/static-pages.ts'
import { createMetrics } from './measure.ts'
import { AccessTokens } from './oauth/access-tokens.ts'
import { AttributionCookie } from './oauth/attribution-cookie.ts'
import type { AuthParts } from './oauth/auth-parts.ts'
import { callbackRoute } from './oauth/callback-route.ts'
import { LoginCookies } from './oauth/login-cookies.ts'
import { LoginTransactions } from './oauth/login-transactions.ts'
import { loginRoutes } from './oauth/login-routes.ts'
import { Provider } from './oauth/provider.ts'
import { sessionRoutes } from './oauth/session-routes.ts'
import { StartLimit } from './oauth/start-limit.ts'
import type { Operations } from './ops/ops-listener.ts'
import { relayRoutes } from './relay/relay-routes.ts'
import { Endings } from './session/endings.ts'
import { SessionCookie } from './session/session-cookie.ts'
import { SessionReader } from './session/session-reader.ts'
import { registerSessionWriter } from './session/session-writer.ts'
import { Sessions } from './session/sessions.ts'
import { Envelope } from './store/envelope.ts'
import type { Store } from './store/store.ts'
import { CONNECTIONS } from './upstream/connections.ts'
import { RestClient } from './upstream/rest-client.ts'

const IDLE_SWEEP_MS = 50
/** Less than the shortest time after which servers are set to close an idle connection. */
const ORDER_IDLE_MS = 900

/** What the server is given rather than makes. */
export interface AppParts {
  readonly store: Store
  readonly log: FastifyBaseLogger
}

/** The server, not listening yet. */
export interface App {
  readonly server: FastifyInstance
  readonly ops: Operations
  /**
   * Not ready from here on, it serves on for `waitMs`; then it refuses new work, ends relays, finishes requests, and
   * lets go of everything but the store.
   */
  close(waitMs?: number): Promise<void>
}

/** The whole server: its parts, and which routes they make, in the order a request meets them. */
export async function buildApp(config: Config, { store, log }: AppParts): Promise<App> {
  const metrics = createMetrics()
  const guard = new Guard(config.http, log)
  const server = createServer(config.http, log, metrics, guard)
  const paths = new KnownPaths(server)

  const envelope = new Envelope(config.secrets)
  const cookie = new SessionCookie(config.cookies, config.secrets)
  const sessions = new Sessions(store, envelope, config.session, config.secrets[0] ?? '')
  const reader = new SessionReader(cookie, sessions, store)
  metrics.sessionStore.isUp = () => store.unavailableSince() === undefined
  metrics.sessionStore.nearCache = () => reader.nearCache
  const endings = new Endings(sessions, reader, store, {
    storeGraceMs: config.session.relayStoreGraceMs,
    keepAlive: config.session.relaysKeepSession,
  })
  sessions.onUnreplicatedEnd(() => metrics.unreplicatedEnds.inc())
  sessions.onEnd((key, reason, wasThere) => {
    if (!wasThere) return
    metrics.sessionsEnded.inc({ reason })
    log.info({ audit: 'session_ended', reason, session: sessions.tag(key) }, 'session ended')
  })

  const provider = new Provider(config.oauth)
  const tokens = new AccessTokens({ store, sessions, reader, provider, metrics, log })
  const loginCookies = new LoginCookies(config.cookies, config.secrets)
  const auth: AuthParts = {
    config: config.oauth,
    sessionMaxMs: config.session.maxMs,
    transactions: new LoginTransactions(store, envelope, loginCookies, config.oauth.loginTtlMs),
    attributionCookie: new AttributionCookie(config.cookies, config.secrets, config.oauth.attributionTtlMs),
    startLimit: new StartLimit(store, config.oauth.startsPerMinute),
    ...{ guard, metrics, cookie, sessions, reader, provider, tokens },
  }
  await server.register(async function authentication(scope) {
    await scope.register(fastifyCookie)
    await scope.register(loginRoutes, auth)
    await scope.register(sessionRoutes, auth)
    await scope.register(async function callback(inner) {
      await registerSessionWriter(inner, cookie, sessions)
      await callbackRoute(inner, auth)
    })
  })

  const rest = new RestClient(config.upstream)
  // Connections of their own: a REST API that is slow must not keep anybody from the market.
  const otpRest = new RestClient(config.upstream, { connections: CONNECTIONS.oneTimeUrls })
  // So do calls that may move money: never on a connection that upstream, or who stands before it, is about to close.
  const orders = new RestClient(config.upstream, { connections: CONNECTIONS.orders, idleMs: ORDER_IDLE_MS })
  await server.register(async function api(scope) {
    const endpoints = catalog(config.upstream.partnerOverviewPath)
    const { http, upstream } = config
    const shared = { store, envelope, everyMs: upstream.healthMs }
    await catalogRoutes(scope, endpoints, {
      ...{ http, upstream, guard, metrics, reader, tokens, rest, orders, shared },
    })
    const { publicUrl, maxBodyBytes } = http
    await openApiRoute(server, { endpoints, facts: { publicUrl, maxBodyBytes, sessionCookie: cookie.name } })
  })
  await server.register(async function relays(scope) {
    const { relay, upstream } = config
    await relayRoutes(scope, {
      config: relay,
      drainMs: config.drainMs - config.drainWaitMs,
      ...{ upstream, guard, metrics, reader, endings, tokens, rest: otpRest, log },
    })
  })
  const pages = await registerStaticPages(server, config.http)
  await server.register(problemRoutes, pages)
  server.setNotFoundHandler((request, reply) =>
    pages.isPage(request)
      ? reply.sendFile('index.html')
      : sendProblem(request, reply, paths.problem(request)),
  )

  let isClosing = false
  return {
    server,
    ops: {
      reasons: () => unreadyReasons(phaseOf(server, isClosing), store, config.readyGraceMs),
      registry: () => metrics.registry,
    },
    async close(waitMs = 0) {
      isClosing = true
      if (waitMs > 0) await serveLastRequests(server, waitMs)
      await closeServer(server)
      await Promise.all([provider.close(), rest.close(), otpRest.close(), orders.close()])
      flushFailures(log)
    },
  }
}

/** Every answer from now on is its connection's last, so that few are left open, and none in use, when the time is up. */
async function serveLastRequests({ server }: FastifyInstance, waitMs: number): Promise<void> {
  server.prependListener('request', (_request, response) => void (response.shouldKeepAlive = false))
  await delay(waitMs)
}

/** A connection that was busy when the server closed is kept alive after its answer, and would hold up the end. */
async function closeServer(server: FastifyInstance): Promise<void> {
  const sweep = setInterval(() => server.server.closeIdleConnections(), IDLE_SWEEP_MS)
  try {
    await server.close()
  } finally {
    clearInterval(sweep)
  }
}

function phaseOf(server: FastifyInstance, isClosing: boolean): 'starting' | 'serving' | 'draining' {
  if (isClosing) return 'draining'
  return server.server.listening ? 'serving' : 'starting'
}

function unreadyReasons(phase: ReturnType<typeof phaseOf>, store: Store, graceMs: number): string[] {
  const reasons: string[] = phase === 'serving' ? [] : [phase]
  const downSince = store.unavailableSince()
  if (downSince !== undefined && Date.now() - downSince >= graceMs) reasons.push('session store unavailable')
  return reasons
}
