import { feedChecks } from './feed.ts'
import { isLoopbackHost, isPublicHost } from './hostname.ts'
import { oidcChecks } from './oidc.ts'
import { providerChecks, providerWarnings, type ProviderConfig } from './provider.ts'
import { problemsWhere, type SettingProblem } from './setting-rule.ts'
import { FROM_SUPERVISOR, settings, type SettingValues, type ValidValues } from './settings.ts'
import { tracesChecks } from './traces.ts'
import { budgetChecks } from './upstream.ts'

/**
 * Finds contradictions between settings.
 * @param valid lacks the values that are wrong by themselves
 * @param raw the settings that are set
 */
export function crossChecks(valid: ValidValues, raw: Readonly<Record<string, string>>): SettingProblem[] {
  const { server, listen, session, oauth, oidc, idempotency, relay } = valid
  const { workers = 1, drainMs = Infinity, drainWaitMs = 0 } = server
  const { idleMs = 0, maxMs = Infinity } = session
  const hasRedis = raw['REDIS_URL'] !== undefined
  // A default gives way (`complete` in config.ts).
  const areLimitsSet = raw['SESSION_IDLE_SECONDS'] !== undefined && raw['SESSION_MAX_SECONDS'] !== undefined
  const general = problemsWhere([
    ['WORKERS', !hasRedis && workers > 1, 'must be 1 without REDIS_URL: processes cannot share sessions in memory'],
    [
      'IDEMPOTENCY_REPLICAS',
      !hasRedis && (idempotency.replicas ?? 0) > 0,
      'must be 0 without REDIS_URL, which has the replicas',
    ],
    ['DRAIN_WAIT_SECONDS', (drainWaitMs ?? 0) > drainMs, 'must not be more than DRAIN_SECONDS, of which it is a part'],
    [
      'OPS_PORT',
      (listen.port ?? 0) !== 0 && listen.port === listen.opsPort,
      'must differ from PORT: it is for operators only',
    ],
    [
      'SESSION_IDLE_SECONDS',
      areLimitsSet && idleMs > maxMs,
      'must not be more than SESSION_MAX_SECONDS, at which a session ends in any case',
    ],
    [
      'MAX_WAITING_BYTES',
      (relay.maxWaitingBytes ?? Infinity) < (relay.maxBufferedBytes ?? 0),
      'must not be less than MAX_BUFFERED_BYTES, which may wait for one peer alone',
    ],
  ])
  const isDiscovered = oauth.discovery === true || raw[FROM_SUPERVISOR.hasDiscovered] !== undefined
  return [
    ...general,
    ...identityChecks(valid, raw),
    ...feedChecks(valid.feed, relay.maxBufferedBytes, raw),
    ...budgetChecks(valid.budget),
    ...tracesChecks(valid.traces, raw),
    ...providerChecks(oauth, raw),
    ...oidcChecks(oidc, oauth.authorizationParams ?? [], isDiscovered, raw),
  ]
}

/** Without a subject, these settings would silently do nothing. One that is wrong by itself is not missing, too. */
function identityChecks({ server, identity, oidc }: ValidValues, raw: Readonly<Record<string, string>>) {
  const hasPointer = raw['IDENTITY_POINTER'] !== undefined
  if (raw['IDENTITY_PATH'] !== undefined) {
    return problemsWhere([['IDENTITY_POINTER', !hasPointer, 'is required with IDENTITY_PATH']])
  }
  const isLimited = raw['MAX_SESSIONS_PER_SUBJECT'] !== undefined && Number.isFinite(identity.maxSessions)
  return problemsWhere([
    ['IDENTITY_PATH', hasPointer, 'is required with IDENTITY_POINTER'],
    ['MAX_SESSIONS_PER_SUBJECT', isLimited && oidc.isOn !== true, 'needs IDENTITY_PATH or OIDC'],
    [
      'LOG_SUBJECT',
      server.logsPlainSubjects === true && oidc.isOn !== true,
      'needs IDENTITY_PATH or OIDC: without them no line has a subject',
    ],
  ])
}

/** For so long the browser package repeats an order that it remembers (client/src/orders/remembered-key.ts). */
const REMEMBERED_SECONDS = 3600

/** Returns warnings about settings that are allowed but have consequences an operator should know. */
export function settingWarnings(
  { server, listen, ops, http, session, budget, idempotency }: SettingValues,
  oauth: ProviderConfig,
  frontendOrigins: ReadonlySet<string>,
): string[] {
  const { publicUrl, workers } = server
  const warnings = providerWarnings(oauth, isProduction(publicUrl))
  if (server.redisUrl === undefined) {
    warnings.push('REDIS_URL is not set: sessions are kept in memory and end with this process')
  }
  if (server.secrets === undefined) {
    warnings.push('SESSION_SECRETS is not set: a random one is used, so every session ends with this process')
  }
  const maxSeconds = session.maxMs / 1000
  if (session.idleMs > session.maxMs && maxSeconds === Number(settings.session.maxMs.default)) {
    warnings.push(
      `SESSION_IDLE_SECONDS is more than the default of SESSION_MAX_SECONDS: sessions end after ${maxSeconds} s`,
    )
  }
  const opsHost = listen.opsHost ?? listen.host
  if (ops.token !== undefined && isPublicHost(opsHost)) {
    warnings.push(
      `OPS_TOKEN is set, and the ops listener binds to ${opsHost}: set OPS_HOST to an address that only operators can reach`,
    )
  }
  const home = oauth.frontendUrl
  if (!frontendOrigins.has(home)) {
    warnings.push(
      `FRONTEND_ORIGINS lacks ${home}, to which logins return: calls and sockets of pages there are refused`,
    )
  }
  if (http.staticDir !== undefined && home !== publicUrl && !frontendOrigins.has(publicUrl)) {
    warnings.push(
      `FRONTEND_ORIGINS lacks ${publicUrl}, where STATIC_DIR is served: calls and sockets of pages there are refused`,
    )
  }
  if (budget.windows !== undefined && workers > budget.instances) {
    warnings.push(
      `UPSTREAM_BUDGET_INSTANCES is ${budget.instances}, but ${workers} workers run here alone: without Redis they may exceed the budget`,
    )
  }
  if (idempotency.ttlMs < REMEMBERED_SECONDS * 1000) {
    warnings.push(
      `IDEMPOTENCY_TTL_SECONDS is less than the ${REMEMBERED_SECONDS} s for which the browser package repeats an order with remember: such an order may be made twice`,
    )
  }
  for (const origin of frontendOrigins) {
    if (roughSite(origin) !== roughSite(publicUrl)) {
      warnings.push(
        `${origin} is not same-site with ${publicUrl}: browsers will not send the session cookie with its requests`,
      )
    }
  }
  return warnings
}

/** The scheme, and the address or the last two labels of the host. Without a public suffix list it is only a guess. */
function roughSite(origin: string): string {
  const { protocol, hostname } = new URL(origin)
  const isAddress = /[\d\]]$/.test(hostname)
  return `${protocol}//${isAddress ? hostname : hostname.split('.').slice(-2).join('.')}`
}

/** Whether PUBLIC_URL is missing or names another host than a loopback one. A value that is no http or https URL does not count. */
export function isProduction(publicUrl: string | undefined): boolean {
  if (publicUrl === undefined) return true
  const url = URL.parse(publicUrl)
  return url !== null && /^https?:$/.test(url.protocol) && !isLoopbackHost(url.hostname)
}
