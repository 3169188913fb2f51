import { feedRules } from './feed.ts'
import { idempotencyRules } from './idempotency.ts'
import { oidcRules } from './oidc.ts'
import { providerRules } from './provider.ts'
import { isOn, settingFormats } from './setting-formats.ts'
import {
  flag,
  oneOf,
  required,
  text,
  textOr,
  whole,
  type SettingProblem,
  type SettingRule,
  type ValuesOf,
} from './setting-rule.ts'
import { tracesRules } from './traces.ts'

/** Settings whose values must never be printed. `NAME_FILE` may name a file that holds the value instead. */
export const SECRET_SETTINGS = [
  'SESSION_SECRETS',
  'CLIENT_SECRET',
  'CLIENT_KEY',
  'REDIS_URL',
  'OPS_TOKEN',
  'OTEL_EXPORTER_OTLP_HEADERS',
  'OTEL_EXPORTER_OTLP_TRACES_HEADERS',
] as const

/** Tells a worker that its supervisor has operators with a token. It is set by no operator. */
export const SUPERVISED = 'SUPERVISOR_HAS_OPERATORS'
/** Tells a worker that its supervisor has secrets in files. It is set by no operator. */
export const FILED = 'SUPERVISOR_HAS_SECRET_FILES'

const DAY = 86_400
const MIB = 1_048_576

/** Every setting, in the order of `.env.example`. A test compares that file and docs/settings.md with this table. */
export const settingRules = {
  PUBLIC_URL: required('Origin of this server; the redirect URI is PUBLIC_URL + /auth/callback', 'origin', 'https'),
  AUTH_URL: required('Base address of the OAuth 2.0 provider', 'httpUrl', 'https'),
  API_URL: required('Base address of the upstream REST API', 'httpUrl', 'https'),
  WS_URL: required('Base address of the upstream WebSocket API', 'wsUrl', 'wss'),
  CLIENT_ID: required('Client id registered with the provider', 'printable'),
  SESSION_SECRETS: text(
    'Comma-separated secrets of at least 32 bytes; the first signs and encrypts, all verify and decrypt',
    'secrets',
    'required',
  ),
  REDIS_URL: text(
    'Session store: redis://host:port, redis+cluster://host:port for a Cluster (any of its nodes), or redis+sentinel://host:port,host:port/master-name; rediss for TLS',
    'redisUrl',
    'required',
  ),
  TRUST_PROXY: text(
    'Proxies whose X-Forwarded-* headers are trusted: none, a number of hops, or comma-separated addresses and CIDRs',
    'trustProxy',
    'required',
  ),

  SERVICE_APP_ID: text('Application id sent upstream in APP_ID_HEADER (default: CLIENT_ID)', 'printable'),
  APP_ID_HEADER: textOr('Service-App-ID', 'headerName', 'Header that carries the application id upstream'),
  ...providerRules,
  ...oidcRules,
  FRONTEND_URL: text('Origin the browser returns to after a login (default: PUBLIC_URL)', 'origin', 'https'),
  FRONTEND_ORIGINS: text(
    'Comma-separated origins that may call /api, /auth and /ws (default: FRONTEND_URL and PUBLIC_URL)',
    'origins',
  ),
  STATIC_DIR: text('Folder of static files to serve', 'folder'),
  STATIC_CSP: textOr(
    "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; object-src 'none'",
    'printable',
    'Content-Security-Policy of the static pages',
  ),
  PARTNER_OVERVIEW_PATH: text('Upstream path of the partner overview; not routed when unset', 'path'),
  OTP_URL_POINTER: textOr('/data/url', 'jsonPointer', 'JSON pointer to the socket URL in the OTP response'),
  OTP_HOSTS: text('Hosts (host or host:port) that OTP URLs may name besides that of WS_URL', 'hosts'),

  SESSION_IDLE_SECONDS: whole(1800, 1, 30 * DAY, 'A session ends after being unused for this long'),
  SESSION_MAX_SECONDS: whole(28_800, 1, 30 * DAY, 'A session ends this long after its login'),
  LOGIN_TTL_SECONDS: whole(3600, 1, DAY, 'How long a started login may take'),
  TOKEN_FALLBACK_SECONDS: whole(3600, 1, 30 * DAY, 'Token lifetime when the provider names no usable one'),
  ATTRIBUTION_TTL_SECONDS: whole(DAY, 0, 365 * DAY, 'How long a partner link is remembered; 0 = not at all'),
  AUTH_STARTS_PER_MINUTE: whole(
    30,
    0,
    1_000_000,
    'Logins and sign-ups that one client address (IPv6: /64) may start in a minute; 0 = no limit',
  ),
  IDENTITY_PATH: text('Upstream path that says whose session a login has created; not asked when unset', 'path'),
  IDENTITY_POINTER: text(
    'JSON pointer to the subject, a string or a number, in the response to IDENTITY_PATH',
    'jsonPointer',
  ),
  MAX_SESSIONS_PER_SUBJECT: whole(100, 0, 1000, 'Sessions of one subject; a login beyond it ends the oldest. 0 = 1000'),
  RELAYS_KEEP_SESSION: flag(true, 'Whether an open relay counts as activity of its session'),

  API_REQUESTS_PER_MINUTE: whole(
    0,
    0,
    1_000_000,
    'API requests of one session, on all instances together, one-time URLs included; 0 = no limit',
  ),
  MAX_BODY_BYTES: whole(MIB, 1, 1024 * MIB, 'Largest request body'),
  ...idempotencyRules,
  MAX_RELAYS_PER_SESSION: whole(5, 1, 1000, 'Open trading sockets of one session, on all instances together'),
  MAX_SESSION_SOCKETS: whole(20, 1, 1000, 'Open session sockets of one subject, else of one session, per process'),
  MAX_SESSION_SOCKETS_PER_IP: whole(
    200,
    1,
    100_000,
    'Open session sockets of one client address (IPv6: /64), only those of sessions without a subject, per process',
  ),
  MAX_PUBLIC_RELAYS_PER_IP: whole(50, 1, 100_000, 'Open public sockets of one client address, per process'),
  PUBLIC_HANDSHAKES_PER_MINUTE: {
    kind: 'whole',
    minimum: 0,
    maximum: 1_000_000,
    description:
      'Public and session sockets that one client address may open in a minute, per process; 0 = no limit (default: 4 × MAX_PUBLIC_RELAYS_PER_IP)',
  },
  MAX_RELAYS: whole(20_000, 1, 1_000_000, 'Open sockets of one process; a quarter is reserved for trading'),
  MAX_BUFFERED_BYTES: whole(MIB, 1024, 1024 * MIB, 'Bytes waiting for one peer before the other is paused'),
  MAX_MESSAGE_BYTES: whole(65_536, 1, 1024 * MIB, 'Largest WebSocket message from a browser'),
  MAX_UPSTREAM_MESSAGE_BYTES: whole(MIB, 1, 1024 * MIB, 'Largest WebSocket message from upstream'),
  SLOW_CONSUMER_SECONDS: whole(10, 1, 3600, 'A browser that keeps upstream paused for longer is cut off'),
  RELAY_STORE_GRACE_SECONDS: whole(120, 1, DAY, 'How long a relay survives without the session store'),
  ...feedRules,
  HEALTH_SECONDS: whole(10, 1, 3600, 'Shortest interval between upstream health requests of all instances'),
  UPSTREAM_CONNECT_SECONDS: whole(3, 1, 600, 'Upstream connect timeout'),
  UPSTREAM_MAX_CONNECTION_SECONDS: whole(60, 1, DAY, 'How long a connection to the REST API may be reused'),
  UPSTREAM_HEADERS_SECONDS: whole(15, 1, 600, 'Upstream response-header timeout'),
  UPSTREAM_BODY_SECONDS: whole(30, 1, 600, 'Upstream body idle timeout'),

  UPSTREAM_BUDGET: text(
    'Calls of the REST API that upstream allows one address, as calls/seconds, for several windows; all instances together never make more. Empty = no limit',
    'budget',
  ),
  UPSTREAM_BUDGET_NAME: textOr(
    'default',
    'budgetName',
    'Instances with the same name and the same Redis share a budget; give each egress address its own',
  ),
  UPSTREAM_BUDGET_SHARES: textOr(
    '100,80,50',
    'budgetShares',
    'Percent of the budget up to which orders, one-time URLs and reads are admitted',
  ),
  UPSTREAM_BUDGET_ALONE: textOr(
    '0.1',
    'fraction',
    'Part of the budget that is set aside for instances that cannot reach Redis',
  ),
  UPSTREAM_BUDGET_INSTANCES: whole(3, 1, 1000, 'Processes that share the part set aside; each worker counts'),

  HOST: textOr('0.0.0.0', 'bindable', 'Address that the public listener binds to'),
  PORT: whole(3000, 0, 65_535, 'Port of the public listener'),
  OPS_PORT: whole(9464, 0, 65_535, 'Port of the ops listener: /livez, /readyz and /metrics'),
  OPS_HOST: text('Address that the ops listener binds to (default: HOST)', 'bindable'),
  OPS_TOKEN: text(
    'Bearer token of 32 to 1,024 printable ASCII characters without spaces for /sessions on the ops listener, which lists and ends sessions, and for /controls, which pauses orders; without it there are no such paths',
    'token',
  ),
  READY_GRACE_SECONDS: whole(10, 0, 3600, 'How long the server stays ready without the session store'),
  DRAIN_SECONDS: whole(20, 0, 3600, 'Time limit of a shutdown'),
  DRAIN_WAIT_SECONDS: {
    kind: 'whole',
    minimum: 0,
    maximum: 3600,
    description:
      'First part of DRAIN_SECONDS, in which the server is not ready but still serves, until the balancer notices (default: in production 5, at most a quarter of DRAIN_SECONDS; otherwise 0)',
  },
  LOG_LEVEL: oneOf('info', ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'], 'Minimum log level'),
  LOG_SUBJECT: oneOf('hash', ['hash', 'plain'], 'How audit lines name the subject: a keyed hash, or as it is'),
  WORKERS: textOr('1', 'workers', 'Processes that share the port; auto = one per core. More than one needs REDIS_URL'),
  DEV_INSECURE_COOKIES: {
    ...flag(false, 'Cookies without __Host- and Secure, for browsers that refuse them; development only'),
    production: 'off',
  },

  ...tracesRules,
} as const satisfies Record<string, SettingRule>

/** The settings as text and numbers. Each is valid by itself. */
export type Settings = ValuesOf<typeof settingRules>

/** Returns the settings that are valid, and adds the others to `problems`. */
export function readSettings(
  raw: Readonly<Record<string, string>>,
  inProduction: boolean,
  problems: SettingProblem[],
): Partial<Settings> {
  const values: Record<string, string | number> = {}
  for (const [setting, rule] of Object.entries<SettingRule>(settingRules)) {
    const value = raw[setting]
    const message = problemOf(rule, value, inProduction)
    if (message !== undefined) problems.push({ setting, message })
    else if (value !== undefined) values[setting] = rule.kind === 'whole' ? Number(value) : value
    else if (rule.default !== undefined) values[setting] = rule.default
  }
  return values
}

function problemOf(rule: SettingRule, value: string | undefined, inProduction: boolean): string | undefined {
  const production = inProduction ? rule.production : undefined
  if (value === undefined) {
    if (rule.isRequired) return `is required: ${mustBe(rule)}`
    return production === 'required' ? `is required in production: ${mustBe(rule)}` : undefined
  }
  if (!isAllowed(rule, value)) return `must be ${mustBe(rule)}`
  if (production === 'off') return isOn(value) ? 'must not be set in production' : undefined
  const needsTls = production === 'https' || production === 'wss'
  return needsTls && /^(http|ws):/i.test(value) ? `must be ${production} in production` : undefined
}

function isAllowed({ kind, format, choices, minimum = 0, maximum = Infinity }: SettingRule, value: string) {
  if (kind === 'whole') return /^\d+$/.test(value) && Number(value) >= minimum && Number(value) <= maximum
  return format === undefined ? choices?.includes(value) === true : settingFormats[format].test(value)
}

function mustBe({ kind, format, choices, minimum, maximum }: SettingRule): string {
  if (kind === 'whole') return `a whole number from ${minimum} to ${maximum}`
  return format === undefined ? `one of ${choices?.join(', ')}` : settingFormats[format].must
}
