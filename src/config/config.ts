import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Changeable, changeable } from './changing.ts'
import { feedConfig } from './feed.ts'
import { idempotencyConfig } from './idempotency.ts'
import { oidcChecks } from './oidc.ts'
import { DISCOVERED_ENDPOINTS, providerChecks, providerConfig } from './provider.ts'
import { crossChecks, isProduction, settingWarnings, workerCount } from './setting-checks.ts'
import { isOn, seconds, splitList, textOfFile } from './setting-formats.ts'
import type { SettingProblem, SettingRule } from './setting-rule.ts'
import { parseBudget, parseShares, type BudgetConfig } from './upstream-budget.ts'
import { readSettings, FILED, SECRET_SETTINGS, settingRules, SUPERVISED, type Settings } from './settings.ts'
import { misspeltSettings, settingsWithoutEffect } from './silent-settings.ts'
import { tracesConfig, withoutUnusedTraces } from './traces.ts'

/** Every wrong or missing setting. The message has a line for each, then the hints, and no value. */
export class ConfigError extends Error {
  readonly problems: readonly SettingProblem[]
  constructor(problems: readonly SettingProblem[], hints: readonly string[] = []) {
    const lines = problems.map(({ setting, message }) => `  ${setting} ${message}`)
    super([`${problems.length} setting(s) are wrong:`, ...lines, ...hints].join('\n'))
    this.name = 'ConfigError'
    this.problems = problems
  }
}

/**
 * The parsed settings. Durations are milliseconds, sizes bytes, addresses without a trailing slash. Only what may be in a file
 * ever changes.
 */
export type Config = ReturnType<typeof parse>

/**
 * Reads the settings from an environment.
 * @param found problems that were found elsewhere
 * @throws ConfigError naming every wrong setting at once
 */
export function readConfig(
  environment: Readonly<Record<string, string | undefined>>,
  found: readonly SettingProblem[] = [],
): Config {
  const problems = [...found]
  const raw = withSecretFiles(given(environment), problems)
  const settings = checkedSettings(raw, problems)
  const misspelt = misspeltSettings(Object.keys(raw))
  if (problems.length > 0) {
    throw new ConfigError(
      problems.filter((problem) => !isAboutFile(problem, problems)),
      misspelt,
    )
  }
  return parse(settings as Settings, {
    unread: [...misspelt, ...settingsWithoutEffect(raw)],
    hasOperators: settings.OPS_TOKEN !== undefined || raw[SUPERVISED] !== undefined,
    discovered: raw[DISCOVERED_ENDPOINTS],
    hasSecretFiles: raw[FILED] !== undefined || SECRET_SETTINGS.some((name) => raw[`${name}_FILE`] !== undefined),
  })
}

/** Returns the settings that are valid, and adds to `problems` what is wrong by itself or together. */
function checkedSettings(raw: Readonly<Record<string, string>>, problems: SettingProblem[]): Partial<Settings> {
  const settings = readSettings(raw, isProduction(raw['PUBLIC_URL']), problems)
  problems.push(...crossChecks(settings, raw), ...providerChecks(raw), ...oidcChecks(raw))
  return settings
}

/** What would be wrong with one setting if it had this value and the others were as they are in `environment`. */
export function problemsOf(
  setting: string,
  value: string,
  environment: Readonly<Record<string, string | undefined>>,
): string[] {
  const problems: SettingProblem[] = []
  checkedSettings({ ...given(environment), [setting]: value }, problems)
  return problems.flatMap((problem) => (problem.setting === setting ? problem.message : []))
}

/** The variables that count. An empty one counts as unset, since container tools write it that way. */
function given(environment: Readonly<Record<string, string | undefined>>): Readonly<Record<string, string>> {
  const set: Record<string, string> = {}
  for (const [name, value] of Object.entries(environment)) if (value) set[name] = value
  return withoutUnusedTraces(set)
}

/** Whether a secret is missing only because its file cannot be read, which is a problem of its own. */
function isAboutFile({ setting, message }: SettingProblem, problems: readonly SettingProblem[]): boolean {
  return message.startsWith('is required') && problems.some((other) => other.setting === `${setting}_FILE`)
}

/** Reads the files that `NAME_FILE` names. */
function withSecretFiles(
  environment: Readonly<Record<string, string>>,
  problems: SettingProblem[],
): Record<string, string> {
  const raw = { ...environment }
  for (const name of SECRET_SETTINGS) {
    const file = raw[`${name}_FILE`]
    if (file === undefined) continue
    if (raw[name] !== undefined) {
      problems.push({ setting: name, message: `must not be set together with ${name}_FILE` })
    }
    try {
      raw[name] = textOfFile(readFileSync(file))
    } catch (error) {
      const kind = error instanceof TypeError ? 'file of UTF-8 text' : 'readable file'
      problems.push({ setting: `${name}_FILE`, message: `must name a ${kind}` })
    }
  }
  return raw
}

function drainWaitSeconds(settings: Settings, production: boolean): number {
  return settings.DRAIN_WAIT_SECONDS ?? (production ? Math.min(5, settings.DRAIN_SECONDS / 4) : 0)
}

const withoutSlash = (address: string) => address.replace(/\/+$/, '')
/** Fastify's `trustProxy`. The function tells whether to trust the proxy that is `hop` hops away. */
function trustProxy(value: string | undefined) {
  if (value === undefined || value === 'none') return false
  if (!/^\d+$/.test(value)) return splitList(value)
  const hops = Number(value)
  return (_address: string, hop: number) => hop < hops
}

/** Longer than a browser's connection can be silent while it waits for a response. A GET may be sent upstream twice. */
function connectionIdleSeconds(settings: Settings): number {
  const { UPSTREAM_CONNECT_SECONDS, UPSTREAM_HEADERS_SECONDS, UPSTREAM_BODY_SECONDS } = settings
  return 60 + Math.max(2 * (UPSTREAM_CONNECT_SECONDS + UPSTREAM_HEADERS_SECONDS), UPSTREAM_BODY_SECONDS)
}

/** The numeric settings that differ from their defaults. */
function changedLimits(settings: Settings): Record<string, number> {
  const changed: Record<string, number> = {}
  for (const [name, rule] of Object.entries<SettingRule>(settingRules)) {
    const value = settings[name as keyof Settings]
    if (typeof value === 'number' && value !== rule.default) changed[name] = value
  }
  return changed
}

/** The settings of browser sockets, parsed. */
function relayConfig(settings: Settings, wsUrl: string) {
  return {
    wsUrl,
    otpUrlPointer: settings.OTP_URL_POINTER,
    otpHosts: settings.OTP_HOSTS === undefined ? [] : splitList(settings.OTP_HOSTS),
    maxPerSession: settings.MAX_RELAYS_PER_SESSION,
    maxSessionSockets: settings.MAX_SESSION_SOCKETS,
    maxSessionSocketsPerIp: settings.MAX_SESSION_SOCKETS_PER_IP,
    maxPublicPerIp: settings.MAX_PUBLIC_RELAYS_PER_IP,
    publicHandshakesPerMinute: settings.PUBLIC_HANDSHAKES_PER_MINUTE ?? 4 * settings.MAX_PUBLIC_RELAYS_PER_IP,
    maxRelays: settings.MAX_RELAYS,
    maxBufferedBytes: settings.MAX_BUFFERED_BYTES,
    maxMessageBytes: settings.MAX_MESSAGE_BYTES,
    maxUpstreamMessageBytes: settings.MAX_UPSTREAM_MESSAGE_BYTES,
    slowConsumerMs: seconds(settings.SLOW_CONSUMER_SECONDS),
  }
}

/** Undefined where there is no budget. */
function budgetConfig(settings: Settings): BudgetConfig | undefined {
  const windows = settings.UPSTREAM_BUDGET === undefined ? undefined : parseBudget(settings.UPSTREAM_BUDGET)
  const shares = parseShares(settings.UPSTREAM_BUDGET_SHARES)
  if (windows === undefined || shares === undefined) return undefined
  return {
    name: settings.UPSTREAM_BUDGET_NAME,
    windows,
    shares,
    // A process whose store is its own memory is never without it.
    alone: settings.REDIS_URL === undefined ? 0 : Number(settings.UPSTREAM_BUDGET_ALONE),
    instances: settings.UPSTREAM_BUDGET_INSTANCES,
  }
}

/** Undefined where sessions have no subject. */
function identityConfig(settings: Settings) {
  const { IDENTITY_PATH: path, IDENTITY_POINTER: pointer, MAX_SESSIONS_PER_SUBJECT: maxSessions } = settings
  if (path === undefined || pointer === undefined) return undefined
  return { path, pointer, maxSessions: maxSessions === 0 ? Infinity : maxSessions }
}

/** What is to be known beside the settings. */
interface Surroundings {
  /** Warnings about variables that nothing reads. */
  readonly unread: readonly string[]
  /** Whether this process, or its supervisor, has a token of operators. */
  readonly hasOperators: boolean
  /** The value of {@link DISCOVERED_ENDPOINTS}. */
  readonly discovered: string | undefined
  /** Whether this process, or its supervisor, has secrets in files, which may change. */
  readonly hasSecretFiles: boolean
}

function parse(settings: Settings, { unread, hasOperators, discovered, hasSecretFiles }: Surroundings) {
  const publicUrl = new URL(settings.PUBLIC_URL).origin
  const production = isProduction(publicUrl)
  const frontendUrl = new URL(settings.FRONTEND_URL ?? publicUrl).origin
  const frontendOrigins: ReadonlySet<string> = new Set(
    settings.FRONTEND_ORIGINS === undefined
      ? [frontendUrl, publicUrl]
      : splitList(settings.FRONTEND_ORIGINS).map((origin) => new URL(origin).origin),
  )
  const secure = !isOn(settings.DEV_INSECURE_COOKIES)
  const wsUrl = withoutSlash(settings.WS_URL)
  const warnings = [...unread, ...settingWarnings(settings, publicUrl, frontendOrigins)]
  return Object.freeze({
    publicUrl,
    production,
    warnings,
    logLevel: settings.LOG_LEVEL,
    listen: {
      host: settings.HOST,
      port: settings.PORT,
      opsHost: settings.OPS_HOST ?? settings.HOST,
      opsPort: settings.OPS_PORT,
    },
    ops: { token: changeable(settings.OPS_TOKEN), hasOperators },
    identity: identityConfig(settings),
    /** Whether the log has subjects as they are; otherwise it has keyed hashes. */
    logsPlainSubjects: settings.LOG_SUBJECT === 'plain',
    workers: workerCount(settings.WORKERS),
    /** The setting itself, for the log. */
    trustProxy: settings.TRUST_PROXY ?? 'none',
    changedLimits: changedLimits(settings),
    drainMs: seconds(settings.DRAIN_SECONDS),
    drainWaitMs: seconds(drainWaitSeconds(settings, production)),
    readyGraceMs: seconds(settings.READY_GRACE_SECONDS),
    hasSecretFiles,
    redisUrl: changeable(settings.REDIS_URL),
    secrets: new Changeable<readonly string[]>(
      settings.SESSION_SECRETS === undefined
        ? [randomBytes(32).toString('base64url')]
        : splitList(settings.SESSION_SECRETS),
    ),
    http: {
      production,
      trustProxy: trustProxy(settings.TRUST_PROXY),
      hsts: publicUrl.startsWith('https:'),
      publicUrl,
      frontendOrigins,
      maxBodyBytes: settings.MAX_BODY_BYTES,
      apiRequestsPerMinute: settings.API_REQUESTS_PER_MINUTE,
      connectionIdleMs: seconds(connectionIdleSeconds(settings)),
      staticDir: settings.STATIC_DIR,
      staticCsp: settings.STATIC_CSP,
    },
    cookies: { secure, prefix: secure ? '__Host-' : '' },
    session: {
      idleMs: seconds(Math.min(settings.SESSION_IDLE_SECONDS, settings.SESSION_MAX_SECONDS)),
      maxMs: seconds(settings.SESSION_MAX_SECONDS),
      relaysKeepSession: isOn(settings.RELAYS_KEEP_SESSION),
      relayStoreGraceMs: seconds(settings.RELAY_STORE_GRACE_SECONDS),
    },
    oauth: {
      ...providerConfig(settings, discovered),
      redirectUri: `${publicUrl}/auth/callback`,
      scope: settings.OAUTH_SCOPE,
      legacyAppId: settings.LEGACY_APP_ID,
      frontendUrl,
      loginTtlMs: seconds(settings.LOGIN_TTL_SECONDS),
      tokenFallbackMs: seconds(settings.TOKEN_FALLBACK_SECONDS),
      attributionTtlMs: seconds(settings.ATTRIBUTION_TTL_SECONDS),
      startsPerMinute: settings.AUTH_STARTS_PER_MINUTE,
    },
    upstream: {
      apiUrl: withoutSlash(settings.API_URL),
      appIdHeader: settings.APP_ID_HEADER,
      appId: settings.SERVICE_APP_ID ?? settings.CLIENT_ID,
      partnerOverviewPath: settings.PARTNER_OVERVIEW_PATH,
      healthMs: seconds(settings.HEALTH_SECONDS),
      connectMs: seconds(settings.UPSTREAM_CONNECT_SECONDS),
      maxConnectionMs: seconds(settings.UPSTREAM_MAX_CONNECTION_SECONDS),
      headersMs: seconds(settings.UPSTREAM_HEADERS_SECONDS),
      bodyMs: seconds(settings.UPSTREAM_BODY_SECONDS),
      budget: budgetConfig(settings),
    },
    idempotency: idempotencyConfig(settings),
    relay: relayConfig(settings, wsUrl),
    feed: feedConfig(settings),
    /** Undefined where there are no traces. */
    traces: tracesConfig(settings),
  })
}
