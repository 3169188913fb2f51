import { settingFormats, type SettingFormat } from './setting-formats.ts'

/** Settings whose value must never be printed; each may also be given as a file through `NAME_FILE`. */
export const SECRET_SETTINGS = ['SESSION_SECRETS', 'CLIENT_SECRET', 'REDIS_URL'] as const

/** What a setting may be. Without a default it may be missing, unless it is required. */
export interface SettingRule {
  readonly kind: 'text' | 'whole'
  readonly description: string
  readonly isRequired?: true
  readonly default?: string | number
  readonly format?: SettingFormat
  readonly choices?: readonly string[]
  readonly minimum?: number
  readonly maximum?: number
}

const text = (description: string, format: SettingFormat = 'text') =>
  ({ kind: 'text', description, format }) as const
const required = (description: string, format: SettingFormat) =>
  ({ kind: 'text', description, format, isRequired: true }) as const
const textOr = (fallback: string, format: SettingFormat, description: string) =>
  ({ kind: 'text', description, format, default: fallback }) as const
const oneOf = (fallback: string, choices: readonly string[], description: string) =>
  ({ kind: 'text', description, choices, default: fallback }) as const
const whole = (fallback: number, minimum: number, maximum: number, description: string) =>
  ({ kind: 'whole', description, minimum, maximum, default: fallback }) as const
const flag = (fallback: boolean, description: string) => textOr(String(fallback), 'flag', description)

const DAY = 86_400
const MIB = 1_048_576

/** Every setting, in the order of `.env.example`, which is tested against it, and so is docs/settings.md. */
export const settingRules = {
  PUBLIC_URL: required('Origin of this server; the redirect URI is PUBLIC_URL + /auth/callback', 'origin'),
  AUTH_URL: required('Base address of the OAuth 2.0 provider', 'httpUrl'),
  API_URL: required('Base address of the upstream REST API', 'httpUrl'),
  WS_URL: required('Base address of the upstream WebSocket API', 'wsUrl'),
  CLIENT_ID: required('Client id registered at the provider', 'printable'),
  SESSION_SECRETS: text(
    'Comma-separated secrets of 32 bytes or more; the first signs and encrypts, all verify',
    'secrets',
  ),
  REDIS_URL: text(
    'Session store: redis:// or rediss:// (several comma-separated: Cluster), or redis+sentinel://host:port,host:port/master-name',
    'redisUrl',
  ),
  TRUST_PROXY: text(
    'Who may set X-Forwarded-*: none, a hop count, or addresses and CIDRs, comma-separated',
    'trustProxy',
  ),

  SERVICE_APP_ID: text('Value of the application id header sent upstream (default CLIENT_ID)', 'printable'),
  APP_ID_HEADER: textOr('Service-App-ID', 'headerName', 'Name of the application id header'),
  CLIENT_SECRET: text('Client secret, only for a confidential client'),
  OAUTH_SCOPE: textOr('trade account_manage', 'scope', 'Requested scopes'),
  LEGACY_APP_ID: text('app_id of an application on the legacy API', 'printable'),
  REVOCATION_URL: text('Token revocation endpoint, called at logout', 'httpUrl'),
  FRONTEND_URL: text('Origin the browser returns to after a login (default PUBLIC_URL)', 'origin'),
  FRONTEND_ORIGINS: text(
    'Origins allowed to call /api, /auth and /ws (default FRONTEND_URL and PUBLIC_URL)',
    'origins',
  ),
  STATIC_DIR: text('Folder of static files to serve', 'folder'),
  STATIC_CSP: textOr(
    "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; object-src 'none'",
    'printable',
    'Content-Security-Policy of the static pages',
  ),
  PARTNER_OVERVIEW_PATH: text('Upstream path of the partner overview; not routed when unset', 'path'),
  OTP_URL_POINTER: textOr('/data/url', 'jsonPointer', 'Where the OTP answer carries the WebSocket URL'),
  OTP_HOSTS: text('Hosts (host or host:port) an OTP URL may name beside that of WS_URL', 'hosts'),

  SESSION_IDLE_SECONDS: whole(1800, 1, 30 * DAY, 'A session unused for this long ends'),
  SESSION_MAX_SECONDS: whole(28_800, 1, 30 * DAY, 'A session ends this long after its login'),
  LOGIN_TTL_SECONDS: whole(3600, 10, DAY, 'How long a started login may take'),
  TOKEN_FALLBACK_SECONDS: whole(3600, 1, 30 * DAY, 'Token lifetime when the provider names no usable one'),
  ATTRIBUTION_TTL_SECONDS: whole(DAY, 0, 365 * DAY, 'How long a partner link is remembered; 0 = not at all'),
  AUTH_STARTS_PER_MINUTE: whole(
    30,
    0,
    1_000_000,
    'Logins and sign-ups that one client address (IPv6: /64) may start in a minute; 0 = no limit',
  ),
  RELAYS_KEEP_SESSION: flag(true, 'A live relay counts as activity of its session'),

  API_REQUESTS_PER_MINUTE: whole(0, 0, 1_000_000, 'API requests of one session, per process; 0 = no limit'),
  MAX_BODY_BYTES: whole(MIB, 0, 1024 * MIB, 'Largest request body'),
  MAX_RELAYS_PER_SESSION: whole(5, 1, 1000, 'Trading sockets of one session, per process'),
  MAX_PUBLIC_RELAYS_PER_IP: whole(50, 1, 100_000, 'Public sockets of one client address, per process'),
  PUBLIC_HANDSHAKES_PER_MINUTE: {
    kind: 'whole',
    minimum: 0,
    maximum: 1_000_000,
    description:
      'Public sockets that one client address may open in a minute, per process; 0 = no limit (default: 4 × MAX_PUBLIC_RELAYS_PER_IP)',
  },
  MAX_RELAYS: whole(20_000, 1, 1_000_000, 'Sockets of one process; a quarter is kept for trading'),
  MAX_BUFFERED_BYTES: whole(MIB, 1024, 1024 * MIB, 'Bytes waiting for one side before the other is paused'),
  MAX_MESSAGE_BYTES: whole(65_536, 1, 1024 * MIB, 'Largest WebSocket message from a browser'),
  MAX_UPSTREAM_MESSAGE_BYTES: whole(MIB, 1, 1024 * MIB, 'Largest WebSocket message from upstream'),
  SLOW_CONSUMER_SECONDS: whole(10, 1, 3600, 'A browser that keeps upstream paused for longer is cut off'),
  RELAY_STORE_GRACE_SECONDS: whole(120, 1, DAY, 'How long a relay outlives an unreachable session store'),
  HEALTH_SECONDS: whole(10, 1, 3600, 'All instances together ask upstream for its health at most this often'),
  UPSTREAM_CONNECT_SECONDS: whole(3, 1, 600, 'Upstream connect timeout'),
  UPSTREAM_MAX_CONNECTION_SECONDS: whole(
    60,
    1,
    DAY,
    'A connection to the upstream REST API is used for this long at most, so that a change of its address in DNS is followed',
  ),
  UPSTREAM_HEADERS_SECONDS: whole(15, 1, 600, 'Upstream response-header timeout'),
  UPSTREAM_BODY_SECONDS: whole(30, 1, 600, 'Upstream body idle timeout'),

  HOST: textOr('0.0.0.0', 'printable', 'Address both listeners bind'),
  PORT: whole(3000, 0, 65_535, 'Public port'),
  OPS_PORT: whole(9464, 0, 65_535, 'Port of the ops listener'),
  READY_GRACE_SECONDS: whole(10, 0, 3600, 'Not ready once the session store has been gone for this long'),
  DRAIN_SECONDS: whole(20, 0, 3600, 'Longest shutdown'),
  DRAIN_WAIT_SECONDS: {
    kind: 'whole',
    minimum: 0,
    maximum: 3600,
    description:
      'Part of DRAIN_SECONDS: not ready, but serving on until the balancer has noticed (default in production: 5, at most a quarter of DRAIN_SECONDS; else 0)',
  },
  LOG_LEVEL: oneOf(
    'info',
    ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'],
    'Minimum log level',
  ),
  WORKERS: textOr(
    '1',
    'workers',
    'Processes that share the port; auto = one per core. More than one needs REDIS_URL',
  ),
  DEV_INSECURE_COOKIES: flag(
    false,
    'Cookies without __Host- and Secure, for browsers that need it; not in production',
  ),
} as const satisfies Record<string, SettingRule>

type Rules = typeof settingRules
type Always = { readonly isRequired: true } | { readonly default: string | number }
type ValueOf<Rule extends SettingRule> =
  | (Rule['kind'] extends 'whole' ? number : string)
  | (Rule extends Always ? never : undefined)

/** The settings as text and numbers, each valid by itself. */
export type Settings = { readonly [Name in keyof Rules]: ValueOf<Rules[Name]> }

/** The settings that are as they must be; the others are told in `problems`, a line each that starts with the name. */
export function readSettings(raw: Readonly<Record<string, string>>, problems: string[]): Partial<Settings> {
  const values: Record<string, string | number> = {}
  for (const [name, rule] of Object.entries<SettingRule>(settingRules)) {
    const value = raw[name]
    if (value === undefined) {
      if (rule.default !== undefined) values[name] = rule.default
      if (rule.isRequired) problems.push(`${name} is required: ${mustBe(name)}`)
    } else if (isAllowed(rule, value)) {
      values[name] = rule.kind === 'whole' ? Number(value) : value
    } else {
      problems.push(`${name} must be ${mustBe(name)}`)
    }
  }
  return values
}

function isAllowed({ kind, format, choices, minimum = 0, maximum = Infinity }: SettingRule, value: string) {
  if (kind === 'whole') return /^\d+$/.test(value) && Number(value) >= minimum && Number(value) <= maximum
  return format === undefined ? choices?.includes(value) === true : settingFormats[format].test(value)
}

/** In plain words, what the value of a setting must be. */
export function mustBe(name: string): string {
  const { kind, format, choices, minimum, maximum }: SettingRule = settingRules[name as keyof Settings]
  if (kind === 'whole') return `a whole number from ${minimum} to ${maximum}`
  return format === undefined ? `one of ${choices?.join(', ')}` : settingFormats[format].must
}
