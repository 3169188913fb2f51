import fastifyCookie from '@fastify/cookie'
import type { FastifyBaseLogger, FastifyInstance } from 'fastify'
import { catalogRoutes } from './catalog/catalog-routes.ts'
import { catalog } from './catalog/catalog.ts'
import { openApiRoute } from './catalog/openapi-route.ts'
import type { Config } from './config.ts'
import { Guard } from './http/guard.ts'
import { KnownPaths } from './http/known-paths.ts'
import { sendProblem } from './http/send-problem.ts'
import { createServer } from './http/server.ts'
import { registerStaticPages } from './http/static-pages.ts'
import { createMetrics } from './measure.ts'
import { AccessTokens } from './oauth/access-tokens.ts'
import { AttributionCookie } from './oauth/attribution.ts'
import type { AuthParts } from './oauth/auth-parts.ts'
import { callbackRoute } from './oauth/callback-route.ts'
import { LoginTransactions } from './oauth/login-transactions.ts'
import { loginRoutes } from './oauth/login-routes.ts'
import { Provider } from './oauth/provider.ts'
import { sessionRoutes } from './oauth/session-routes.ts'
import { StartLimit } from './oauth/start-limit.ts'
import { createOpsListener } from './ops/ops-listener.ts'
import { relayRoutes } from './relay/relay-routes.ts'
import { Endings } from './session/endings.ts'
import { SessionCookie } from './session/session-cookie.ts'
import { SessionReader } from './session/session-reader.ts'
import { registerSessionWriter } from './session/session-writer.ts'
import { Sessions } from './session/sessions.ts'
import { Envelope } from './store/envelope.ts'
import type { Store } from './store/store.ts'
import { RestClient } from './upstream/rest-client.ts'

/** What the server is given rather than makes. */
export interface AppParts {
  readonly store: Store
  readonly log: FastifyBaseLogger
}

/** The server's two listeners, not listening yet. */
export interface App {
  readonly server: FastifyInstance
  readonly ops: FastifyInstance
  /** Refuses new work, ends relays, finishes requests, lets go of everything but the store. */
  close(): Promise<void>
}

/** The whole server: its parts, and which routes they make, in the order a request meets them. */
export async function buildApp(config: Config, { store, log }: AppParts): Promise<App> {
  const metrics = createMetrics()
  const guard = new Guard(config.http)
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
  const auth: AuthParts = {
    config: config.oauth,
    sessionMaxMs: config.session.maxMs,
    transactions: new LoginTransactions(store, envelope, config.cookies, config.oauth.loginTtlMs),
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
  await server.register(async function api(scope) {
    const endpoints = catalog(config.upstream.partnerOverviewPath)
    const { http, upstream } = config
    await catalogRoutes(scope, endpoints, { http, upstream, guard, metrics, reader, tokens, rest })
    const { publicUrl, maxBodyBytes } = http
    await openApiRoute(server, { endpoints, facts: { publicUrl, maxBodyBytes, sessionCookie: cookie.name } })
  })
  await server.register(async function relays(scope) {
    const { relay, upstream, drainMs } = config
    await relayRoutes(scope, {
      config: relay,
      ...{ upstream, drainMs, guard, metrics, reader, endings, tokens, rest, log },
    })
  })
  const isPage = await registerStaticPages(server, config.http)
  server.setNotFoundHandler((request, reply) =>
    isPage(request) ? reply.sendFile('index.html') : sendProblem(request, reply, paths.problem(request)),
  )

  let isClosing = false
  const ops = createOpsListener(
    { reasons: () => unreadyReasons(phaseOf(server, isClosing), store, config.readyGraceMs) },
    metrics.registry,
  )
  return {
    server,
    ops,
    async close() {
      isClosing = true
      await server.close()
      await Promise.all([ops.close(), provider.close(), rest.close()])
    },
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
