import { feedSettings } from './feed.ts'
import { idempotencySettings } from './idempotency.ts'
import { oidcSettings } from './oidc.ts'
import { providerSettings } from './provider.ts'
import { relaySettings } from './relay.ts'
import { formats } from './setting-formats.ts'
import {
  changing,
  flag,
  mapped,
  oneOf,
  optional,
  required,
  seconds,
  whole,
  wholeFrom,
  withDefault,
  type SettingProblem,
  type SettingRule,
  type ValuesOf,
} from './setting-rule.ts'
import { tracesSettings } from './traces.ts'
import { budgetSettings, upstreamSettings } from './upstream.ts'

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

/** The variables by which a supervisor tells its workers what is no setting. No operator sets them. */
export const FROM_SUPERVISOR = {
  hasOperators: 'SUPERVISOR_HAS_OPERATORS',
  hasSecretFiles: 'SUPERVISOR_HAS_SECRET_FILES',
  hasDiscovered: 'SUPERVISOR_HAS_DISCOVERED',
  /** The endpoints that it has discovered, separated by commas. */
  discovered: 'SUPERVISOR_DISCOVERED_ENDPOINTS',
} as const

const DAY = 86_400
const MIB = 1_048_576

/**
 * Every setting, in groups and under the names that its value has in the configuration. Tests compare `.env.example` and
 * docs/settings.md with this table.
 */
export const settings = {
  server: {
    publicUrl: required('PUBLIC_URL', formats.origin, 'https').means(
      'Origin of this server; the redirect URI is PUBLIC_URL + /auth/callback',
    ),
    secrets: optional('SESSION_SECRETS', changing(formats.secrets), 'required').means(
      'Comma-separated secrets of at least 32 bytes; the first signs and encrypts, all verify and decrypt',
    ),
    redisUrl: optional('REDIS_URL', changing(formats.redisUrl), 'required').means(
      'Session store: redis://host:port, redis+cluster://host:port for a Cluster (any of its nodes), or redis+sentinel://host:port,host:port/master-name; rediss for TLS',
    ),
    workers: withDefault('WORKERS', '1', formats.workers).means(
      'Processes that share the port; auto = one per core. More than one needs REDIS_URL',
    ),
    logLevel: withDefault(
      'LOG_LEVEL',
      'info',
      oneOf('fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'),
    ).means('Minimum log level'),
    /** Whether the log has subjects as they are; otherwise it has keyed hashes. */
    logsPlainSubjects: withDefault(
      'LOG_SUBJECT',
      'hash',
      mapped(oneOf('hash', 'plain'), (word) => word === 'plain'),
    ).means('How audit lines name the subject: a keyed hash, or as it is'),
    readyGraceMs: seconds('READY_GRACE_SECONDS', 10, [0, 3600]).means(
      'How long the server stays ready without the session store',
    ),
    drainMs: seconds('DRAIN_SECONDS', 20, [0, 3600]).means('Time limit of a shutdown'),
    drainWaitMs: optional(
      'DRAIN_WAIT_SECONDS',
      mapped(wholeFrom(0, 3600), (count) => count * 1000),
    ).means(
      'First part of DRAIN_SECONDS, in which the server is not ready but still serves, until the balancer notices (default: in production 5, at most a quarter of DRAIN_SECONDS; otherwise 0)',
    ),
  },
  listen: {
    host: withDefault('HOST', '0.0.0.0', formats.bindable).means(
      'Address that the public listener binds to; localhost is 127.0.0.1 alone',
    ),
    port: whole('PORT', 3000, [0, 65_535]).means('Port of the public listener'),
    opsPort: whole('OPS_PORT', 9464, [0, 65_535]).means('Port of the ops listener: /livez, /readyz and /metrics'),
    opsHost: optional('OPS_HOST', formats.bindable).means('Address that the ops listener binds to (default: HOST)'),
  },
  ops: {
    token: optional('OPS_TOKEN', changing(formats.token)).means(
      'Bearer token of 32 to 1,024 printable ASCII characters without spaces for /sessions on the ops listener, which lists and ends sessions, and for /controls, which pauses orders; without it there are no such paths',
    ),
  },
  http: {
    trustProxy: optional('TRUST_PROXY', formats.trustProxy, 'required').means(
      'Proxies whose X-Forwarded-* headers are trusted: none, a number of hops, or comma-separated addresses and CIDRs',
    ),
    frontendOrigins: optional('FRONTEND_ORIGINS', formats.origins).means(
      'Comma-separated origins that may call /api, /auth and /ws (default: FRONTEND_URL and PUBLIC_URL)',
    ),
    staticDir: optional('STATIC_DIR', formats.folder).means('Folder of static files to serve'),
    staticCsp: withDefault(
      'STATIC_CSP',
      "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; object-src 'none'",
      formats.printable,
    ).means('Content-Security-Policy of the static pages'),
    apiRequestsPerMinute: whole('API_REQUESTS_PER_MINUTE', 0, [0, 1_000_000]).means(
      'API requests of one session, on all instances together, one-time URLs included; 0 = no limit',
    ),
    maxBodyBytes: whole('MAX_BODY_BYTES', MIB, [1, 1024 * MIB]).means('Largest request body'),
  },
  cookies: {
    areInsecure: flag('DEV_INSECURE_COOKIES', false, 'off').means(
      'Cookies without __Host- and Secure, for browsers that refuse them; development only',
    ),
  },
  oauth: providerSettings,
  oidc: oidcSettings,
  identity: {
    path: optional('IDENTITY_PATH', formats.path).means(
      'Upstream path that says whose session a login has created; not asked when unset',
    ),
    pointer: optional('IDENTITY_POINTER', formats.jsonPointer).means(
      'JSON pointer to the subject, a string or a number, in the response to IDENTITY_PATH',
    ),
    maxSessions: withDefault(
      'MAX_SESSIONS_PER_SUBJECT',
      '100',
      mapped(wholeFrom(0, 1000), (count) => (count === 0 ? Infinity : count)),
    ).means('Sessions of one subject; a login beyond it ends the oldest. 0 = 1000'),
  },
  session: {
    idleMs: seconds('SESSION_IDLE_SECONDS', 1800, [1, 30 * DAY]).means(
      'A session ends after being unused for this long',
    ),
    maxMs: seconds('SESSION_MAX_SECONDS', 28_800, [1, 30 * DAY]).means('A session ends this long after its login'),
    relaysKeepSession: flag('RELAYS_KEEP_SESSION', true).means(
      'Whether an open relay counts as activity of its session',
    ),
    relayStoreGraceMs: seconds('RELAY_STORE_GRACE_SECONDS', 120, [1, DAY]).means(
      'How long a relay survives without the session store',
    ),
  },
  upstream: upstreamSettings,
  budget: budgetSettings,
  idempotency: idempotencySettings,
  relay: relaySettings,
  feed: feedSettings,
  traces: tracesSettings,
} as const

/** The values of all settings, in their groups. */
export type SettingValues = { readonly [Group in keyof typeof settings]: ValuesOf<(typeof settings)[Group]> }

/** The same without those that are wrong. */
export type ValidValues = { readonly [Group in keyof SettingValues]: Partial<SettingValues[Group]> }

/** Every setting by its name. */
export const settingRules: Readonly<Record<string, SettingRule>> = Object.fromEntries(
  Object.values(settings).flatMap((group) => Object.values(group).map((rule: SettingRule) => [rule.name, rule])),
)

/** Parses the settings, and adds what is wrong with them to `problems`. */
export function readSettings(
  raw: Readonly<Record<string, string>>,
  inProduction: boolean,
  problems: SettingProblem[],
): ValidValues {
  const valueOf = ({ name, format, ...rule }: SettingRule): unknown => {
    const given = raw[name]
    const text = given ?? rule.default
    const value = text === undefined ? undefined : format.parse(text)
    const message = problemOf({ name, format, ...rule }, given, value, inProduction)
    if (message !== undefined) problems.push({ setting: name, message })
    return message === undefined ? value : undefined
  }
  const valuesOf = (group: Readonly<Record<string, SettingRule>>) =>
    Object.fromEntries(Object.entries(group).map(([key, rule]) => [key, valueOf(rule)]))
  return Object.fromEntries(Object.entries(settings).map(([key, group]) => [key, valuesOf(group)])) as ValidValues
}

function problemOf(
  { format: { must }, isRequired, production }: SettingRule,
  text: string | undefined,
  value: unknown,
  inProduction: boolean,
): string | undefined {
  if (text === undefined) {
    if (isRequired) return `is required: ${must}`
    return inProduction && production === 'required' ? `is required in production: ${must}` : undefined
  }
  if (value === undefined) return `must be ${must}`
  if (!inProduction) return undefined
  if (production === 'off') return value === true ? 'must not be set in production' : undefined
  const needsTls = production === 'https' || production === 'wss'
  return needsTls && /^(http|ws):/i.test(text) ? `must be ${production} in production` : undefined
}
