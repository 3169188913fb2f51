import { availableParallelism } from 'node:os'
import { isLoopbackHost, isPublicHost } from './hostname.ts'
import { providerWarnings } from './provider-config.ts'
import { settingRules, type SettingProblem, type Settings } from './settings.ts'
import { parseBudget, parseShares, windowsWithoutEffect } from './upstream-budget.ts'

/** Finds contradictions between settings. `settings` lacks those that are wrong by themselves; `raw` has those that are set. */
export function crossChecks(settings: Partial<Settings>, raw: Readonly<Record<string, string>>): SettingProblem[] {
  const { WORKERS = '1', DRAIN_SECONDS, DRAIN_WAIT_SECONDS = 0, PORT, OPS_PORT } = settings
  const problems: SettingProblem[] = []
  if (raw['REDIS_URL'] === undefined && workerCount(WORKERS) > 1) {
    const message = 'must be 1 without REDIS_URL: processes cannot share sessions in memory'
    problems.push({ setting: 'WORKERS', message })
  }
  if (raw['REDIS_URL'] === undefined && (settings.IDEMPOTENCY_REPLICAS ?? 0) > 0) {
    problems.push({ setting: 'IDEMPOTENCY_REPLICAS', message: 'must be 0 without REDIS_URL, which has the replicas' })
  }
  if (DRAIN_SECONDS !== undefined && DRAIN_WAIT_SECONDS > DRAIN_SECONDS) {
    const message = 'must not be more than DRAIN_SECONDS, of which it is a part'
    problems.push({ setting: 'DRAIN_WAIT_SECONDS', message })
  }
  if (PORT !== undefined && PORT !== 0 && PORT === OPS_PORT) {
    problems.push({ setting: 'OPS_PORT', message: 'must differ from PORT: it is for operators only' })
  }
  const { SESSION_IDLE_SECONDS = 0, SESSION_MAX_SECONDS = Infinity } = settings
  // A default gives way (`parse` in config.ts).
  const areLimitsSet = raw['SESSION_IDLE_SECONDS'] !== undefined && raw['SESSION_MAX_SECONDS'] !== undefined
  if (areLimitsSet && SESSION_IDLE_SECONDS > SESSION_MAX_SECONDS) {
    const message = 'must not be more than SESSION_MAX_SECONDS, at which a session ends in any case'
    problems.push({ setting: 'SESSION_IDLE_SECONDS', message })
  }
  return [...problems, ...identityChecks(settings, raw), ...feedChecks(settings, raw), ...budgetChecks(settings)]
}

/** Without a subject, these settings would silently do nothing. */
function identityChecks(settings: Partial<Settings>, raw: Readonly<Record<string, string>>): SettingProblem[] {
  const { OPS_TOKEN, MAX_SESSIONS_PER_SUBJECT = 0, LOG_SUBJECT } = settings
  // One that is wrong by itself is not missing, too.
  const { IDENTITY_PATH, IDENTITY_POINTER } = raw
  const problems: SettingProblem[] = []
  const check = (setting: string, isWrong: boolean, message: string): void => {
    if (isWrong) problems.push({ setting, message })
  }
  const hasPath = IDENTITY_PATH !== undefined
  check('IDENTITY_POINTER', hasPath && IDENTITY_POINTER === undefined, 'is required with IDENTITY_PATH')
  check('IDENTITY_PATH', !hasPath && IDENTITY_POINTER !== undefined, 'is required with IDENTITY_POINTER')
  check('OPS_TOKEN', !hasPath && OPS_TOKEN !== undefined, 'needs IDENTITY_PATH: sessions are found by their subject')
  check('MAX_SESSIONS_PER_SUBJECT', !hasPath && MAX_SESSIONS_PER_SUBJECT > 0, 'needs IDENTITY_PATH')
  check('LOG_SUBJECT', !hasPath && LOG_SUBJECT === 'plain', 'needs IDENTITY_PATH: without it no line has a subject')
  return problems
}

/** A class without a single call in a window could never make one, and a window that never binds is a mistake. */
function budgetChecks(settings: Partial<Settings>): SettingProblem[] {
  const { UPSTREAM_BUDGET = '', UPSTREAM_BUDGET_SHARES = '', UPSTREAM_BUDGET_ALONE = '0' } = settings
  const problems: SettingProblem[] = []
  const idle = windowsWithoutEffect(UPSTREAM_BUDGET)
  if (idle.length > 0) {
    const message = `must not have window ${idle.join(', ')} of its list: another window is always the tighter one`
    problems.push({ setting: 'UPSTREAM_BUDGET', message })
  }
  const windows = parseBudget(UPSTREAM_BUDGET) ?? []
  const { reads = 1 } = parseShares(UPSTREAM_BUDGET_SHARES) ?? {}
  const shared = (calls: number): number => calls - Math.floor(calls * Number(UPSTREAM_BUDGET_ALONE))
  if (windows.every(({ calls }) => Math.floor(shared(calls) * reads) >= 1)) return problems
  const message =
    'is too small: less than one call of a window is left for reads (UPSTREAM_BUDGET_SHARES, UPSTREAM_BUDGET_ALONE)'
  return [...problems, { setting: 'UPSTREAM_BUDGET', message }]
}

/** The settings of a feed that is off do not matter, and the defaults give way (`feedConfig`). */
function feedChecks(settings: Partial<Settings>, raw: Readonly<Record<string, string>>): SettingProblem[] {
  if (settings.PUBLIC_FEED !== 'shared') return []
  const { FEED_CONFLATE_BYTES = 0, MAX_BUFFERED_BYTES = Infinity } = settings
  const { FEED_SUBSCRIPTIONS = 0, FEED_MAX_SOCKETS = Infinity, FEED_SUBSCRIPTIONS_PER_SOCKET = Infinity } = settings
  const problems: SettingProblem[] = []
  if (raw['FEED_CONFLATE_BYTES'] !== undefined && FEED_CONFLATE_BYTES >= MAX_BUFFERED_BYTES) {
    const message = 'must be less than MAX_BUFFERED_BYTES, from which on a slow browser is cut off'
    problems.push({ setting: 'FEED_CONFLATE_BYTES', message })
  }
  const places = FEED_MAX_SOCKETS * FEED_SUBSCRIPTIONS_PER_SOCKET
  if (raw['FEED_SUBSCRIPTIONS'] !== undefined && FEED_SUBSCRIPTIONS > places) {
    const message = 'must not be more than FEED_MAX_SOCKETS × FEED_SUBSCRIPTIONS_PER_SOCKET, which all browsers share'
    problems.push({ setting: 'FEED_SUBSCRIPTIONS', message })
  }
  return problems
}

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

/** Whether PUBLIC_URL is missing or names another host than a loopback one. What is no http or https URL does not count. */
export function isProduction(publicUrl: string | undefined): boolean {
  if (publicUrl === undefined) return true
  const url = URL.parse(publicUrl)
  return url !== null && /^https?:$/.test(url.protocol) && !isLoopbackHost(url.hostname)
}

/** The number of processes that WORKERS means on this machine. */
export function workerCount(value: string): number {
  return value === 'auto' ? availableParallelism() : Number(value)
}
