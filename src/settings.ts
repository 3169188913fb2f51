import { Type, type Static } from 'typebox'
import { settingFormats, type SettingFormat } from './setting-formats.ts'

/** Settings whose value must never be printed; each may also be given as a file through `NAME_FILE`. */
export const SECRET_SETTINGS = ['SESSION_SECRETS', 'CLIENT_SECRET', 'REDIS_URL'] as const

const text = (description: string, format?: SettingFormat) =>
  Type.Optional(Type.String({ description, minLength: 1, ...(format === undefined ? {} : { format }) }))
const required = (description: string, format?: SettingFormat) =>
  Type.String({ description, minLength: 1, ...(format === undefined ? {} : { format }) })
const whole = (fallback: number, minimum: number, maximum: number, description: string) =>
  Type.Integer({ default: fallback, minimum, maximum, description })
const flag = (fallback: boolean, description: string) =>
  Type.String({ default: String(fallback), format: 'flag', description })

const DAY = 86_400
const MIB = 1_048_576

/** Every setting, in the order the documentation lists them. `.env.example` is tested against it. */
export const settingsSchema = Type.Object({
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
  APP_ID_HEADER: Type.String({
    default: 'Service-App-ID',
    format: 'headerName',
    description: 'Name of the application id header',
  }),
  CLIENT_SECRET: text('Client secret, only for a confidential client'),
  OAUTH_SCOPE: Type.String({
    default: 'trade account_manage',
    format: 'scope',
    description: 'Requested scopes',
  }),
  LEGACY_APP_ID: text('app_id of an application on the legacy API', 'printable'),
  REVOCATION_URL: text('Token revocation endpoint, called at logout', 'httpUrl'),
  FRONTEND_URL: text('Origin the browser returns to after a login (default PUBLIC_URL)', 'origin'),
  FRONTEND_ORIGINS: text(
    'Origins allowed to call /api, /auth and /ws (default FRONTEND_URL and PUBLIC_URL)',
    'origins',
  ),
  STATIC_DIR: text('Folder of static files to serve'),
  STATIC_CSP: Type.String({
    default: "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; object-src 'none'",
    format: 'printable',
    description: 'Content-Security-Policy of the static pages',
  }),
  PARTNER_OVERVIEW_PATH: text('Upstream path of the partner overview; not routed when unset', 'path'),
  OTP_URL_POINTER: Type.String({
    default: '/data/url',
    format: 'jsonPointer',
    description: 'Where the OTP answer carries the WebSocket URL',
  }),
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
  MAX_RELAYS: whole(20_000, 1, 1_000_000, 'Sockets of one process'),
  MAX_BUFFERED_BYTES: whole(MIB, 1024, 1024 * MIB, 'Bytes waiting for one side before the other is paused'),
  MAX_MESSAGE_BYTES: whole(65_536, 1, 1024 * MIB, 'Largest WebSocket message from a browser'),
  MAX_UPSTREAM_MESSAGE_BYTES: whole(MIB, 1, 1024 * MIB, 'Largest WebSocket message from upstream'),
  SLOW_CONSUMER_SECONDS: whole(10, 1, 3600, 'A browser that keeps upstream paused for longer is cut off'),
  RELAY_STORE_GRACE_SECONDS: whole(120, 1, DAY, 'How long a relay outlives an unreachable session store'),
  UPSTREAM_CONNECT_SECONDS: whole(3, 1, 600, 'Longest wait for a connection to upstream'),
  UPSTREAM_HEADERS_SECONDS: whole(15, 1, 600, 'Longest wait for the head of an answer of upstream'),
  UPSTREAM_BODY_SECONDS: whole(30, 1, 600, 'Longest silence in the middle of an answer of upstream'),

  HOST: Type.String({ default: '0.0.0.0', format: 'printable', description: 'Address both listeners bind' }),
  PORT: whole(3000, 0, 65_535, 'Public port'),
  OPS_PORT: whole(9464, 0, 65_535, 'Port of the ops listener'),
  READY_GRACE_SECONDS: whole(10, 0, 3600, 'Not ready once the session store has been gone for this long'),
  DRAIN_SECONDS: whole(20, 0, 3600, 'Longest shutdown'),
  LOG_LEVEL: Type.Enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'], {
    default: 'info',
    description: 'Least level logged',
  }),
  // Refused rather than ignored: several processes on one machine are not built yet.
  WORKERS: Type.Enum(['1'], { default: '1', description: 'Processes; for more, run more instances' }),
  DEV_INSECURE_COOKIES: flag(
    false,
    'Cookies without __Host- and Secure, for browsers that need it; not in production',
  ),
})

/** The settings as text and numbers, each valid by itself. */
export type Settings = Static<typeof settingsSchema>

type SettingRule = { format?: SettingFormat; minimum?: number; maximum?: number; enum?: readonly string[] }

/** In plain words, what the value of a setting must be. */
export function mustBe(name: string): string {
  const property = settingsSchema.properties[name as keyof Settings] as SettingRule
  if (property.enum !== undefined) return `one of ${property.enum.join(', ')}`
  if (property.minimum !== undefined) {
    return `a whole number from ${property.minimum} to ${property.maximum}`
  }
  return property.format === undefined ? 'a text that is not empty' : settingFormats[property.format].must
}
