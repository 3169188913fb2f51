import { setTimeout as delay } from 'node:timers/promises'
import fastifyCookie from '@fastify/cookie'
import type { FastifyBaseLogger, FastifyInstance } from 'fastify'
import { catalogRoutes } from './proxy/catalog-routes.ts'
import { catalog } from './proxy/catalog.ts'
import { openApiRoute } from './proxy/openapi-route.ts'
import type { Config } from './config/config.ts'
import { flushFailures } from './telemetry/failure-log.ts'
import { Guard } from './http/guard.ts'
import { KnownPaths } from './http/known-paths.ts'
import { problemRoutes } from './http/problem-pages.ts'
import { sendProblem } from './http/send-problem.ts'
import { createServer } from './http/server.ts'
import { registerStaticPages } from './http/static-pages.ts'
import { logTag } from './telemetry/log-tag.ts'
import { createMetrics } from './telemetry/metrics.ts'
import { addSecretsInfo } from './telemetry/secrets-info.ts'
import { AttributionCookie } from './login/attribution-cookie.ts'
import type { LoginDependencies } from './login/login-dependencies.ts'
import { callbackRoute } from './login/callback-route.ts'
import { LoginCookies } from './login/login-cookies.ts'
import { LoginTransactions } from './login/login-transactions.ts'
import { loginRoutes } from './login/login-routes.ts'
import { Provider } from './oauth/provider.ts'
import { sessionRoutes } from './login/session-routes.ts'
import { StartLimit } from './login/start-limit.ts'
import type { OpsSource } from './ops/ops-listener.ts'
import { relayRoutes } from './sockets/relay/relay-routes.ts'
import { Envelope, Sessions } from './sessions/index.ts'
import type { Store } from './store/store.ts'
import { CONNECTIONS } from './upstream/connections.ts'
import { RestClient } from './upstream/rest-client.ts'

const IDLE_SWEEP_MS = 50
/** Less than the shortest time after which servers are set to close an idle connection. */
const ORDER_IDLE_MS = 900

/** What the server is given rather than makes. */
export interface AppDependencies {
  readonly store: Store
  readonly log: FastifyBaseLogger
  /** How many lines of the log were lost so far. */
  readonly droppedLines?: () => number
}

/** The server, not listening yet. */
export interface App {
  readonly server: FastifyInstance
  readonly ops: OpsSource
  /**
   * Not ready from here on, it serves on for `waitMs`; then it refuses new work, ends relays, finishes requests, and
   * lets go of everything but the store.
   */
  close(waitMs?: number): Promise<void>
}

/** The whole server: its parts, and which routes they make, in the order a request meets them. */
export async function buildApp(
  config: Config,
  { store, log, droppedLines = () => 0 }: AppDependencies,
): Promise<App> {
  const metrics = createMetrics()
  addSecretsInfo(metrics.registry, config.secrets)
  const guard = new Guard(config.http, log)
  const server = createServer(config.http, log, metrics, guard)
  const paths = new KnownPaths(server)

  const envelope = new Envelope(config.secrets)
  metrics.sessionStore.isUp = () => store.unavailableSince() === undefined
  metrics.sessionStore.facts = () => store.facts()
  store.observe(metrics.sessionStore.observer)
  metrics.logLines.dropped = droppedLines
  const provider = new Provider(config.oauth, metrics.provider)
  metrics.provider.isCircuitOpen = () => provider.isCircuitOpen
  const sessions = new Sessions(config, { store, envelope, provider, metrics, log })

  const loginCookies = new LoginCookies(config.cookies, config.secrets)
  const auth: LoginDependencies = {
    config: config.oauth,
    sessionMaxMs: config.session.maxMs,
    transactions: new LoginTransactions(store, envelope, loginCookies, config.oauth.loginTtlMs),
    attributionCookie: new AttributionCookie(config.cookies, config.secrets, config.oauth.attributionTtlMs),
    startLimit: new StartLimit(store, config.oauth.startsPerMinute),
    ...{ guard, metrics, sessions, provider },
  }
  await server.register(async function authentication(scope) {
    await scope.register(fastifyCookie)
    await scope.register(loginRoutes, auth)
    await scope.register(sessionRoutes, auth)
    await scope.register(async function callback(inner) {
      await sessions.registerWriter(inner)
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
      ...{ http, upstream, guard, metrics, sessions, rest, orders, shared },
    })
    const { publicUrl, maxBodyBytes } = http
    await openApiRoute(server, {
      endpoints,
      facts: { publicUrl, maxBodyBytes, sessionCookie: sessions.cookie.name },
    })
  })
  await server.register(async function relays(scope) {
    const { relay, upstream } = config
    await relayRoutes(scope, {
      config: relay,
      drainMs: config.drainMs - config.drainWaitMs,
      accountTag: (accountId) => logTag(config.secrets[0] ?? '', `account:${accountId}`),
      ...{ upstream, guard, metrics, sessions, rest: otpRest, log },
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
      warnings: () => warningsOf(store),
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

/** What an operator should put right, although this instance serves: without it fewer would. */
function warningsOf(store: Store): string[] {
  const refusal = store.refusesWrites()
  return refusal === undefined ? [] : [refusal]
}
