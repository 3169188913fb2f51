import { availableParallelism } from 'node:os'
import { isLoopbackHost, isPublicHost } from './hostname.ts'
import { feedChecks } from './feed.ts'
import { providerWarnings } from './provider.ts'
import { isOn } from './setting-formats.ts'
import { problemsWhere, type SettingProblem } from './setting-rule.ts'
import { settingRules, type Settings } from './settings.ts'
import { tracesChecks } from './traces.ts'
import { callsShared, parseBudget, parseShares, windowsWithoutEffect } from './upstream-budget.ts'

/** Finds contradictions between settings. `settings` lacks those that are wrong by themselves; `raw` has those that are set. */
export function crossChecks(settings: Partial<Settings>, raw: Readonly<Record<string, string>>): SettingProblem[] {
  const { WORKERS = '1', DRAIN_SECONDS = Infinity, DRAIN_WAIT_SECONDS = 0, PORT = 0, OPS_PORT } = settings
  const { SESSION_IDLE_SECONDS = 0, SESSION_MAX_SECONDS = Infinity, IDEMPOTENCY_REPLICAS = 0 } = settings
  const hasRedis = raw['REDIS_URL'] !== undefined
  // A default gives way (`parse` in config.ts).
  const areLimitsSet = raw['SESSION_IDLE_SECONDS'] !== undefined && raw['SESSION_MAX_SECONDS'] !== undefined
  const general = problemsWhere([
    [
      'WORKERS',
      !hasRedis && workerCount(WORKERS) > 1,
      'must be 1 without REDIS_URL: processes cannot share sessions in memory',
    ],
    [
      'IDEMPOTENCY_REPLICAS',
      !hasRedis && IDEMPOTENCY_REPLICAS > 0,
      'must be 0 without REDIS_URL, which has the replicas',
    ],
    [
      'DRAIN_WAIT_SECONDS',
      DRAIN_WAIT_SECONDS > DRAIN_SECONDS,
      'must not be more than DRAIN_SECONDS, of which it is a part',
    ],
    ['OPS_PORT', PORT !== 0 && PORT === OPS_PORT, 'must differ from PORT: it is for operators only'],
    [
      'SESSION_IDLE_SECONDS',
      areLimitsSet && SESSION_IDLE_SECONDS > SESSION_MAX_SECONDS,
      'must not be more than SESSION_MAX_SECONDS, at which a session ends in any case',
    ],
  ])
  return [
    ...general,
    ...identityChecks(settings, raw),
    ...feedChecks(settings, raw),
    ...budgetChecks(settings),
    ...tracesChecks(settings, raw),
  ]
}

/** Without a subject, these settings would silently do nothing. One that is wrong by itself is not missing, too. */
function identityChecks(settings: Partial<Settings>, raw: Readonly<Record<string, string>>): SettingProblem[] {
  const { MAX_SESSIONS_PER_SUBJECT: maxSessions = 0, LOG_SUBJECT } = settings
  const hasPointer = raw['IDENTITY_POINTER'] !== undefined
  const hasOidc = isOn(raw['OIDC'] ?? '')
  if (raw['IDENTITY_PATH'] !== undefined) {
    return problemsWhere([['IDENTITY_POINTER', !hasPointer, 'is required with IDENTITY_PATH']])
  }
  return problemsWhere([
    ['IDENTITY_PATH', hasPointer, 'is required with IDENTITY_POINTER'],
    [
      'MAX_SESSIONS_PER_SUBJECT',
      raw['MAX_SESSIONS_PER_SUBJECT'] !== undefined && maxSessions > 0 && !hasOidc,
      'needs IDENTITY_PATH or OIDC',
    ],
    [
      'LOG_SUBJECT',
      LOG_SUBJECT === 'plain' && !hasOidc,
      'needs IDENTITY_PATH or OIDC: without them no line has a subject',
    ],
  ])
}

/** A class without a single call in a window could never make one, and a window that never binds is a mistake. */
function budgetChecks(settings: Partial<Settings>): SettingProblem[] {
  const { UPSTREAM_BUDGET = '', UPSTREAM_BUDGET_SHARES = '', UPSTREAM_BUDGET_ALONE = '0' } = settings
  const idle = windowsWithoutEffect(UPSTREAM_BUDGET)
  const windows = parseBudget(UPSTREAM_BUDGET) ?? []
  const { reads = 1 } = parseShares(UPSTREAM_BUDGET_SHARES) ?? {}
  const alone = Number(UPSTREAM_BUDGET_ALONE)
  return problemsWhere([
    [
      'UPSTREAM_BUDGET',
      idle.length > 0,
      `must not have window ${idle.join(', ')} of its list: another window is always the tighter one`,
    ],
    [
      'UPSTREAM_BUDGET',
      windows.some((window) => Math.floor(callsShared(window, { alone }) * reads) < 1),
      'is too small: less than one call of a window is left for reads (UPSTREAM_BUDGET_SHARES, UPSTREAM_BUDGET_ALONE)',
    ],
  ])
}

/** For so long the browser package repeats an order that it remembers (client/src/orders/remembered-key.ts). */
const REMEMBERED_SECONDS = 3600

/** Returns warnings about settings that are allowed but have consequences an operator should know. */
export function settingWarnings(settings: Settings, publicUrl: string, frontendOrigins: ReadonlySet<string>): string[] {
  const warnings = providerWarnings(settings, isProduction(publicUrl))
  if (settings.REDIS_URL === undefined) {
    warnings.push('REDIS_URL is not set: sessions are kept in memory and end with this process')
  }
  if (settings.SESSION_SECRETS === undefined) {
    warnings.push('SESSION_SECRETS is not set: a random one is used, so every session ends with this process')
  }
  const { SESSION_IDLE_SECONDS: idle, SESSION_MAX_SECONDS: max } = settings
  if (idle > max && max === settingRules.SESSION_MAX_SECONDS.default) {
    warnings.push(`SESSION_IDLE_SECONDS is more than the default of SESSION_MAX_SECONDS: sessions end after ${max} s`)
  }
  const opsHost = settings.OPS_HOST ?? settings.HOST
  if (settings.OPS_TOKEN !== undefined && isPublicHost(opsHost)) {
    warnings.push(
      `OPS_TOKEN is set, and the ops listener binds to ${opsHost}: set OPS_HOST to an address that only operators can reach`,
    )
  }
  const { FRONTEND_URL, STATIC_DIR } = settings
  const home = FRONTEND_URL === undefined ? publicUrl : new URL(FRONTEND_URL).origin
  if (!frontendOrigins.has(home)) {
    warnings.push(
      `FRONTEND_ORIGINS lacks ${home}, to which logins return: calls and sockets of pages there are refused`,
    )
  }
  if (STATIC_DIR !== undefined && home !== publicUrl && !frontendOrigins.has(publicUrl)) {
    warnings.push(
      `FRONTEND_ORIGINS lacks ${publicUrl}, where STATIC_DIR is served: calls and sockets of pages there are refused`,
    )
  }
  const workers = workerCount(settings.WORKERS)
  if (settings.UPSTREAM_BUDGET !== undefined && workers > settings.UPSTREAM_BUDGET_INSTANCES) {
    warnings.push(
      `UPSTREAM_BUDGET_INSTANCES is ${settings.UPSTREAM_BUDGET_INSTANCES}, but ${workers} workers run here alone: without Redis they may exceed the budget`,
    )
  }
  if (settings.IDEMPOTENCY_TTL_SECONDS < REMEMBERED_SECONDS) {
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

/** The number of processes that WORKERS means on this machine. */
export function workerCount(value: string): number {
  return value === 'auto' ? availableParallelism() : Number(value)
}
