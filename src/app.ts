import fastifyCookie from '@fastify/cookie'
import type { FastifyBaseLogger, FastifyInstance } from 'fastify'
import type { Registry } from 'prom-client'
import type { Config } from './config/config.ts'
import type { SecretFiles } from './config/secret-files.ts'
import { flushBoundedLines } from './telemetry/bounded-lines.ts'
import { logLateNames } from './telemetry/failure-log.ts'
import { instanceName } from './telemetry/log.ts'
import { createMetrics, type LogLines } from './telemetry/metrics.ts'
import { addSecretMetrics, addSecretsInfo } from './telemetry/secret-metrics.ts'
import { FingerprintKey } from './store/fingerprint-key.ts'
import { openTraces } from './telemetry/traces/traces.ts'
import type { Store } from './store/store.ts'
import { CallLimit } from './limits/call-limit.ts'
import { clientScriptRoutes } from './http/client-script.ts'
import { closeServer } from './http/closing.ts'
import { Guard } from './http/guard.ts'
import { KnownPaths } from './http/known-paths.ts'
import { problemRoutes, sendProblem } from './http/problem-pages.ts'
import { createServer } from './http/server.ts'
import { registerStaticPages } from './http/static-pages.ts'
import { openBudget } from './upstream/open-budget.ts'
import { createRestClients } from './upstream/rest-clients.ts'
import { Provider, type OpenIdOf } from './oauth/provider.ts'
import type { ProviderObserver } from './oauth/provider-traffic.ts'
import { Envelope, Sessions } from './sessions/index.ts'
import type { Controls } from './controls/controls.ts'
import { callbackRoute } from './login/callback-route.ts'
import { createLoginDependencies } from './login/login-dependencies.ts'
import { loginRoutes } from './login/login-routes.ts'
import { sessionRoutes } from './login/session-routes.ts'
import { redirectTyped } from './login/typed-paths.ts'
import { catalogRoutes } from './proxy/catalog-routes.ts'
import { catalog } from './proxy/catalog.ts'
import { documentRoutes } from './openapi/document-routes.ts'
import { prepareSockets } from './sockets/prepare-sockets.ts'
import { relayRoutes } from './sockets/relay/relay-routes.ts'
import { sessionSocketRoute } from './sockets/session/session-socket-route.ts'
import { readiness, type OpsSource } from './ops/ops-listener.ts'
import { operatorCommands } from './ops/operator-commands.ts'

/** The parts that the caller of {@link buildApp} makes and closes. */
export interface AppDependencies {
  /**
   * Redis, or memory. While it is unavailable, logins return to the frontend with `try_later`, calls that need a session get
   * 503, and open sockets live on for RELAY_STORE_GRACE_SECONDS. After READY_GRACE_SECONDS the instance is not ready.
   */
  readonly store: Store
  readonly log: FastifyBaseLogger
  /** What becomes of the lines of the log, for the metrics. */
  readonly logLines?: LogLines
  /** Names this process for operators, as each line of the log does. */
  readonly instance?: string
  /** Absent where no secret is in a file, and in a worker, whose supervisor has them. */
  readonly secretFiles?: Pick<SecretFiles, 'warnings' | 'states'> | undefined
}

/** The server before it listens. */
export interface App {
  readonly server: FastifyInstance
  readonly ops: OpsSource
  /**
   * Drains: the app is not ready from here on, but serves for `waitMs` more; then it refuses new work, ends the relays,
   * finishes requests, and closes everything but the store.
   */
  close(waitMs?: number): Promise<void>
}

/**
 * Builds the whole server: its parts, and then its routes. That is the order of registration, and not the way of a request. Each
 * request passes the hooks of {@link createServer} first, in their order there: it is logged, must be well-formed, and is refused
 * while the server closes. Then {@link KnownPaths} refuses what no route takes, the hooks of its scope follow, such as the `Origin` of
 * every socket in {@link prepareSockets}, and at last its route.
 */
export async function buildApp(config: Config, deps: AppDependencies): Promise<App> {
  const { store, log, logLines, instance = instanceName(), secretFiles } = deps
  logLateNames(log)
  const metrics = createMetrics(logLines)
  const fingerprintKey = new FingerprintKey(store)
  addSecretsInfo(metrics.registry, config)
  if (config.hasSecretFiles) {
    const files = secretFiles && (() => secretFiles.states)
    addSecretMetrics(metrics.registry, { config, fingerprintKey: () => fingerprintKey.read(), files })
  }
  metrics.sessionStore.store = store
  metrics.sessionStore.mark = () => fingerprintKey.read()
  store.observe(metrics.sessionStore.observer)

  const guard = new Guard(config.http, log, metrics)
  const traces = await openTraces(config, log)
  const server = createServer(config.http, log, metrics, guard, traces)
  const paths = new KnownPaths(server, guard)
  const budget = await openBudget(config, store, metrics)
  // A budget whose ledger is new grants nothing at first, and browsers need not come before.
  const opening = new AbortController()
  if (budget !== undefined) server.addHook('onReady', () => budget.opened(opening.signal, () => sayWaiting(log)))
  const clients = createRestClients(config.upstream, budget)
  const provider = new Provider(
    config.oauth,
    await providerObserver(config, metrics.provider, log),
    await openIdOf(config.oauth, metrics.registry),
  )
  metrics.provider.isCircuitOpen = () => provider.circuit.isOpen
  const envelope = new Envelope(config.secrets)
  // Sessions renew access tokens shortly before they expire: once for all instances, under a lock in the store.
  const sessions = new Sessions(config, { store, envelope, provider, metrics, log })
  const subjects = await sessions.createSubjects(config, { store, envelope, budget, registry: metrics.registry })
  const { replicas } = config.idempotency
  store.watchReplication(replicas)
  // For what must outlive a failover of the store.
  const confirmed = replicas === 0 ? store : await store.openConfirmed(replicas)
  const controlled = { store, confirmed, envelope, sessions, subjects, registry: metrics.registry, log, instance }
  const controls = await openControls(config, controlled)
  if (controls !== undefined) server.addHook('onReady', () => controls.shared.open())
  const shared = { guard, metrics, sessions, subjects, controls, provider, store, envelope, clients, log }

  const login = createLoginDependencies(config, shared)
  await server.register(async function authentication(scope) {
    await scope.register(fastifyCookie)
    await scope.register(loginRoutes, login)
    await scope.register(sessionRoutes, login)
    await scope.register(callbackRoute, login)
    const { openId } = provider
    if (openId !== undefined && subjects?.logouts !== undefined) {
      const { providerLogoutRoutes } = await import('./login/provider-logout-routes.ts')
      await scope.register(providerLogoutRoutes, { ...login, openId, logouts: subjects.logouts, store })
    }
  })

  const { http, upstream, idempotency, secrets } = config
  // REST calls and one-time URLs of a session share it.
  const callLimit = http.apiRequestsPerMinute === 0 ? undefined : new CallLimit(store, http.apiRequestsPerMinute)
  const endpoints = catalog(upstream.partnerOverviewPath)
  const catalogParts = { endpoints, http, upstream, idempotency, secrets, callLimit, confirmed }
  await server.register(catalogRoutes, { ...catalogParts, ...shared })
  const { publicUrl, maxBodyBytes } = http
  const facts = { publicUrl, maxBodyBytes, idempotency, sessionCookie: sessions.cookie.name, oidc: config.oauth.oidc }
  await server.register(documentRoutes, { endpoints, facts })
  await server.register(async function sockets(scope) {
    const deps = await prepareSockets(scope, { config, callLimit, budget, ...shared })
    await relayRoutes(scope, deps)
    if (config.feed.isShared) {
      // Nothing of the feed is loaded where it is off.
      const { feedRoutes } = await import('./sockets/feed/feed-routes.ts')
      await feedRoutes(scope, deps)
    }
    await sessionSocketRoute(scope, deps)
  })
  const pages = (paths.files = await registerStaticPages(server, http))
  await server.register(clientScriptRoutes, { guard, pages })
  await server.register(problemRoutes, pages)
  server.setNotFoundHandler((request, reply) => {
    if (redirectTyped(request, reply, { publicUrl, metrics })) return
    const problem = paths.problem(request)
    if (!pages.isPage(request, problem) || !pages.sendFile('index.html', reply)) sendProblem(request, reply, problem)
  })

  const { reasons, warnings, drain } = readiness(server, store, config.readyGraceMs)
  return {
    server,
    ops: {
      reasons,
      warnings: () => [...warnings(), ...(secretFiles?.warnings ?? []), ...(controls?.shared.warnings ?? [])],
      registry: () => metrics.registry,
      fingerprintKey: () => fingerprintKey.read(),
      runCommand: operatorCommands({ sessions, subjects, controls, log }),
    },
    async close(waitMs = 0) {
      drain()
      opening.abort()
      await closeServer(server, waitMs)
      await Promise.all([
        sessions.close().then(() => provider.close()),
        clients.close(),
        subjects?.identity?.close(),
        controls?.shared.close(),
        traces.close(),
      ])
      await budget?.close()
      flushBoundedLines(log)
    },
  }
}

/** Otherwise an operator would see a start that does nothing. */
function sayWaiting(log: FastifyBaseLogger): void {
  log.info('the start waits for calls of the upstream budget: its ledger is new or away')
}

/** Nothing that asks the provider for its metadata again is loaded where the settings name every endpoint. */
async function providerObserver(
  { oauth }: Config,
  metrics: ProviderObserver,
  log: FastifyBaseLogger,
): Promise<ProviderObserver> {
  if (oauth.discovered.length === 0) return metrics
  const { watchForMoves } = await import('./oauth/moved-endpoints.ts')
  return { asked: (...asked) => metrics.asked(...asked), missing: watchForMoves(oauth, log) }
}

/** Nothing of OpenID Connect is loaded where it is off. */
async function openIdOf(config: Config['oauth'], registry: Registry): Promise<OpenIdOf | undefined> {
  const { oidc } = config
  if (oidc === undefined) return undefined
  const { OpenId } = await import('./oauth/open-id.ts')
  return (traffic) => new OpenId(config, oidc, traffic, registry)
}

/** Nothing of the controls is loaded where operators have no token to change them. */
async function openControls(
  { ops }: Config,
  deps: Parameters<typeof import('./controls/open-controls.ts').createControls>[0],
): Promise<Controls | undefined> {
  if (!ops.hasOperators) return undefined
  const { createControls } = await import('./controls/open-controls.ts')
  return createControls(deps)
}
