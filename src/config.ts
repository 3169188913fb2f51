import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { envSchema } from 'env-schema'
import { isLoopbackHost, settingFormats, splitList } from './setting-formats.ts'
import { mustBe, SECRET_SETTINGS, settingsSchema, type Settings } from './settings.ts'

/** Wrong or missing settings, one line each. No line ever carries a value. */
export class ConfigError extends Error {
  readonly problems: readonly string[]
  constructor(problems: readonly string[]) {
    super(`${problems.length} setting(s) are wrong:\n${problems.map((line) => `  ${line}`).join('\n')}`)
    this.name = 'ConfigError'
    this.problems = problems
  }
}

/** The parsed settings. Durations are milliseconds, sizes bytes, addresses without a trailing slash. */
export type Config = ReturnType<typeof parse>

/**
 * Reads the settings from an environment.
 * @throws ConfigError naming every wrong setting at once
 */
export function readConfig(environment: Readonly<Record<string, string | undefined>>): Config {
  const problems: string[] = []
  const raw = withSecretFiles(environment, problems)
  let settings: Settings | undefined
  try {
    settings = envSchema<Settings>({
      schema: settingsSchema,
      env: false,
      data: { ...raw },
      ajv: { customOptions: (ajv) => addFormats(ajv) },
    })
  } catch (error) {
    if (!isValidationError(error)) throw error
    problems.push(...error.errors.map(describe))
  }
  problems.push(...crossChecks(raw, new Set(problems.map((line) => line.split(' ', 1)[0] ?? ''))))
  if (settings === undefined || problems.length > 0) throw new ConfigError(problems)
  return parse(settings)
}

/** An empty value counts as unset, as container tools write it; `NAME_FILE` stands for NAME. */
function withSecretFiles(
  environment: Readonly<Record<string, string | undefined>>,
  problems: string[],
): Record<string, string> {
  const raw: Record<string, string> = {}
  for (const [name, value] of Object.entries(environment)) if (value) raw[name] = value
  for (const name of SECRET_SETTINGS) {
    const file = raw[`${name}_FILE`]
    if (file === undefined) continue
    if (raw[name] !== undefined) problems.push(`${name} must not be set together with ${name}_FILE`)
    try {
      raw[name] = readFileSync(file, 'utf8').trim()
    } catch {
      problems.push(`${name}_FILE must name a readable file`)
    }
  }
  return raw
}

type ConfigurableAjv = { addFormat(name: string, test: (value: string) => boolean): unknown }

function addFormats<Validator extends ConfigurableAjv>(ajv: Validator): Validator {
  for (const [name, format] of Object.entries(settingFormats)) ajv.addFormat(name, format.test)
  return ajv
}

type ValidationError = {
  errors: { instancePath: string; keyword: string; params: Record<string, unknown>; message?: string }[]
}

function isValidationError(error: unknown): error is ValidationError {
  return error instanceof Error && 'errors' in error && Array.isArray(error.errors)
}

function describe(error: ValidationError['errors'][number]): string {
  if (error.keyword === 'required') {
    const name = String(error.params['missingProperty'])
    return `${name} is required: ${mustBe(name)}`
  }
  const name = error.instancePath.slice(1)
  return `${name} must be ${mustBe(name)}`
}

/** What depends on several settings. `reported` holds the names already found wrong. */
function crossChecks(raw: Readonly<Record<string, string>>, reported: ReadonlySet<string>): string[] {
  if (reported.has('PUBLIC_URL') && raw['PUBLIC_URL'] !== undefined) return []
  const production = isProduction(raw['PUBLIC_URL'])
  const problems: string[] = []
  if (!production) return problems
  const demand = (name: keyof Settings, why: string) => {
    if (!reported.has(name)) problems.push(`${name} ${why}`)
  }
  for (const name of ['SESSION_SECRETS', 'REDIS_URL', 'TRUST_PROXY'] as const) {
    if (raw[name] === undefined) demand(name, `is required in production: ${mustBe(name)}`)
  }
  for (const name of ['PUBLIC_URL', 'AUTH_URL', 'API_URL', 'FRONTEND_URL', 'REVOCATION_URL'] as const) {
    if (raw[name]?.toLowerCase().startsWith('http:')) demand(name, 'must be https in production')
  }
  if (raw['WS_URL']?.toLowerCase().startsWith('ws:')) demand('WS_URL', 'must be wss in production')
  if (raw['DEV_INSECURE_COOKIES'] !== undefined && isOn(raw['DEV_INSECURE_COOKIES'])) {
    demand('DEV_INSECURE_COOKIES', 'must not be set in production')
  }
  return problems
}

/** Production is every PUBLIC_URL but a loopback one, the missing one included. */
function isProduction(publicUrl: string | undefined): boolean {
  return publicUrl === undefined || !isLoopbackHost(new URL(publicUrl).hostname)
}

const isOn = (value: string) => value === '1' || value === 'true'
const withoutSlash = (address: string) => address.replace(/\/+$/, '')
const seconds = (count: number) => count * 1000

/** Whether the peer at an address, `hop` hops away, may speak for the client. */
type TrustProxy = false | string[] | ((address: string, hop: number) => boolean)

function trustProxy(value: string | undefined): TrustProxy {
  if (value === undefined || value === 'none') return false
  if (!/^\d+$/.test(value)) return splitList(value)
  const hops = Number(value)
  return (_address, hop) => hop < hops
}

/** For a warning only, and roughly (no public suffix list): the same scheme, and the same host or its last two labels. */
function sameSite(one: string, other: string): boolean {
  return roughSite(one) === roughSite(other)
}

function roughSite(origin: string): string {
  const { protocol, hostname } = new URL(origin)
  const isAddress = /[\d\]]$/.test(hostname)
  return `${protocol}//${isAddress ? hostname : hostname.split('.').slice(-2).join('.')}`
}

/** No connection of a browser is silent for longer while it is answered: a GET may be sent upstream twice. */
function connectionIdleSeconds(settings: Settings): number {
  const { UPSTREAM_CONNECT_SECONDS, UPSTREAM_HEADERS_SECONDS, UPSTREAM_BODY_SECONDS } = settings
  return 60 + Math.max(2 * (UPSTREAM_CONNECT_SECONDS + UPSTREAM_HEADERS_SECONDS), UPSTREAM_BODY_SECONDS)
}

function parse(settings: Settings) {
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
  const warnings: string[] = []
  if (settings.REDIS_URL === undefined) {
    warnings.push('REDIS_URL is not set: sessions are held in memory and end with this process')
  }
  if (settings.SESSION_SECRETS === undefined) {
    warnings.push('SESSION_SECRETS is not set: a random one is used, so every session ends with this process')
  }
  for (const origin of frontendOrigins) {
    if (!sameSite(origin, publicUrl)) {
      warnings.push(
        `${origin} is not same-site with ${publicUrl}: browsers will not send it the session cookie`,
      )
    }
  }
  return Object.freeze({
    publicUrl,
    production,
    warnings,
    logLevel: settings.LOG_LEVEL,
    listen: { host: settings.HOST, port: settings.PORT, opsPort: settings.OPS_PORT },
    drainMs: seconds(settings.DRAIN_SECONDS),
    readyGraceMs: seconds(settings.READY_GRACE_SECONDS),
    redisUrl: settings.REDIS_URL,
    secrets:
      settings.SESSION_SECRETS === undefined
        ? [randomBytes(32).toString('base64url')]
        : splitList(settings.SESSION_SECRETS),
    http: {
      trustProxy: trustProxy(settings.TRUST_PROXY),
      hsts: publicUrl.startsWith('https:'),
      publicUrl,
      frontendUrl,
      frontendOrigins,
      maxBodyBytes: settings.MAX_BODY_BYTES,
      apiRequestsPerMinute: settings.API_REQUESTS_PER_MINUTE,
      connectionIdleMs: seconds(connectionIdleSeconds(settings)),
      staticDir: settings.STATIC_DIR,
      staticCsp: settings.STATIC_CSP,
    },
    cookies: { secure, prefix: secure ? '__Host-' : '' },
    session: {
      idleMs: seconds(settings.SESSION_IDLE_SECONDS),
      maxMs: seconds(settings.SESSION_MAX_SECONDS),
      relaysKeepSession: isOn(settings.RELAYS_KEEP_SESSION),
      relayStoreGraceMs: seconds(settings.RELAY_STORE_GRACE_SECONDS),
    },
    oauth: {
      authUrl: withoutSlash(settings.AUTH_URL),
      clientId: settings.CLIENT_ID,
      clientSecret: settings.CLIENT_SECRET,
      redirectUri: `${publicUrl}/auth/callback`,
      scope: settings.OAUTH_SCOPE,
      legacyAppId: settings.LEGACY_APP_ID,
      revocationUrl: settings.REVOCATION_URL,
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
      connectMs: seconds(settings.UPSTREAM_CONNECT_SECONDS),
      headersMs: seconds(settings.UPSTREAM_HEADERS_SECONDS),
      bodyMs: seconds(settings.UPSTREAM_BODY_SECONDS),
    },
    relay: {
      wsUrl,
      otpUrlPointer: settings.OTP_URL_POINTER,
      otpHosts: settings.OTP_HOSTS === undefined ? [] : splitList(settings.OTP_HOSTS),
      maxPerSession: settings.MAX_RELAYS_PER_SESSION,
      maxPublicPerIp: settings.MAX_PUBLIC_RELAYS_PER_IP,
      maxRelays: settings.MAX_RELAYS,
      maxBufferedBytes: settings.MAX_BUFFERED_BYTES,
      maxMessageBytes: settings.MAX_MESSAGE_BYTES,
      maxUpstreamMessageBytes: settings.MAX_UPSTREAM_MESSAGE_BYTES,
      slowConsumerMs: seconds(settings.SLOW_CONSUMER_SECONDS),
    },
  })
}
