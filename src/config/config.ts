import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { Changeable } from './changing.ts'
import { ambiguousSettings } from './env-readers.ts'
import { defaultWaitingBytes, waitingBytesWarnings } from './container-memory.ts'
import { feedConfig } from './feed.ts'
import { providerConfig } from './provider.ts'
import { parseRedisUrl } from './redis-address.ts'
import { crossChecks, isProduction, settingWarnings } from './setting-checks.ts'
import { textOfFile } from './setting-formats.ts'
import type { Environment, SettingProblem } from './setting-rule.ts'
import {
  FROM_SUPERVISOR,
  readSettings,
  SECRET_SETTINGS,
  settingRules,
  type SettingValues,
  type ValidValues,
} from './settings.ts'
import { misspeltSettings, settingsWithoutEffect } from './silent-settings.ts'
import { tracesConfig, withoutUnusedTraces } from './traces.ts'
import { upstreamConfig } from './upstream.ts'

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
export type Config = ReturnType<typeof complete>

/**
 * Reads the settings from an environment.
 * @param found problems that were found elsewhere
 * @param doubts warnings about how the environment was read
 * @throws ConfigError naming every wrong setting at once
 */
export function readConfig(
  environment: Environment,
  found: readonly SettingProblem[] = [],
  doubts: readonly string[] = [],
): Config {
  const problems = [...found]
  const set = given(environment)
  const raw = withSecretFiles(set, problems)
  const valid = checkedSettings(raw, problems)
  const hints = [...misspeltSettings(Object.keys(raw)), ...doubts, ...ambiguousSettings(set)]
  if (problems.length > 0) {
    throw new ConfigError(
      problems.filter((problem) => !isAboutFile(problem, problems)),
      hints,
    )
  }
  return complete(valid as SettingValues, raw, [...hints, ...settingsWithoutEffect(raw)])
}

/** Returns the values that are valid, and adds to `problems` what is wrong by itself or together. */
function checkedSettings(raw: Readonly<Record<string, string>>, problems: SettingProblem[]): ValidValues {
  const valid = readSettings(raw, isProduction(raw['PUBLIC_URL']), problems)
  problems.push(...crossChecks(valid, raw))
  return valid
}

/** Returns the problems of one setting if it had this value and the others were as they are in `environment`. */
export function problemsOf(setting: string, value: string, environment: Environment): string[] {
  const problems: SettingProblem[] = []
  checkedSettings({ ...given(environment), [setting]: value }, problems)
  return problems.flatMap((problem) => (problem.setting === setting ? problem.message : []))
}

/** The variables that count. An empty one counts as unset, since container tools write it that way. */
function given(environment: Environment): Readonly<Record<string, string>> {
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

/** Adds what depends on several settings, or on none. */
function complete(values: SettingValues, raw: Readonly<Record<string, string>>, unread: readonly string[]) {
  const { server, listen, ops, http, cookies, identity, session, upstream, idempotency, relay } = values
  const { publicUrl, redisUrl } = server
  const production = isProduction(publicUrl)
  const oauth = providerConfig(values.oauth, values.oidc, publicUrl, {
    maxSessions: identity.maxSessions,
    discovered: raw[FROM_SUPERVISOR.discovered],
  })
  const frontendOrigins: ReadonlySet<string> = new Set(http.frontendOrigins ?? [oauth.frontendUrl, publicUrl])
  const maxWaitingBytes = relay.maxWaitingBytes ?? defaultWaitingBytes(server.workers)
  const isFiled = SECRET_SETTINGS.some((name) => raw[`${name}_FILE`] !== undefined)
  return Object.freeze({
    ...server,
    production,
    warnings: [
      ...unread,
      ...settingWarnings(values, oauth, frontendOrigins),
      ...waitingBytesWarnings(maxWaitingBytes, server.workers),
    ],
    listen: { ...listen, opsHost: listen.opsHost ?? listen.host },
    /** Whether this process, or its supervisor, has a token of operators. */
    ops: { ...ops, hasOperators: ops.token !== undefined || raw[FROM_SUPERVISOR.hasOperators] !== undefined },
    /** Undefined where upstream is not asked for subjects. */
    identity: identityOf(identity),
    /** The setting itself, for the log. */
    trustProxy: raw['TRUST_PROXY'] ?? 'none',
    changedLimits: changedLimits(raw),
    drainWaitMs: server.drainWaitMs ?? (production ? Math.min(5000, server.drainMs / 4) : 0),
    /** Whether this process, or its supervisor, has secrets in files, which may change. */
    hasSecretFiles: isFiled || raw[FROM_SUPERVISOR.hasSecretFiles] !== undefined,
    secrets: server.secrets ?? new Changeable([randomBytes(32).toString('base64url')]),
    http: {
      ...http,
      trustProxy: http.trustProxy ?? false,
      production,
      hsts: publicUrl.startsWith('https:'),
      publicUrl,
      frontendOrigins,
      connectionIdleMs: connectionIdleMs(upstream),
    },
    cookies: { secure: !cookies.areInsecure, prefix: cookies.areInsecure ? '' : '__Host-' },
    session: { ...session, idleMs: Math.min(session.idleMs, session.maxMs) },
    oauth,
    upstream: upstreamConfig(upstream, values.budget, { clientId: oauth.clientId, hasRedis: redisUrl !== undefined }),
    idempotency: { ...idempotency, replicas: idempotency.replicas ?? defaultReplicas(redisUrl?.current) },
    relay: {
      ...relay,
      maxWaitingBytes,
      otpHosts: relay.otpHosts ?? [],
      publicHandshakesPerMinute: relay.publicHandshakesPerMinute ?? 4 * relay.maxPublicPerIp,
    },
    feed: feedConfig(values.feed, relay.maxBufferedBytes),
    /** Undefined where there are no traces. */
    traces: tracesConfig(values.traces),
  })
}

/** Undefined where upstream is not asked for subjects. */
function identityOf({ path, pointer, maxSessions }: SettingValues['identity']) {
  return path === undefined || pointer === undefined ? undefined : { path, pointer, maxSessions }
}

/** Longer than a browser's connection can be silent while it waits for a response. A GET may be sent upstream twice. */
function connectionIdleMs({ connectMs, headersMs, bodyMs }: SettingValues['upstream']): number {
  return 60_000 + Math.max(2 * (connectMs + headersMs), bodyMs)
}

/** Where a replica may be promoted, one must have the records of Idempotency-Keys. */
function defaultReplicas(redisUrl: string | undefined): number {
  const kind = redisUrl === undefined ? undefined : parseRedisUrl(redisUrl)?.is
  return kind === 'sentinel' || kind === 'cluster' ? 1 : 0
}

/** The numeric settings that differ from their defaults. */
function changedLimits(raw: Readonly<Record<string, string>>): Record<string, number> {
  const changed: Record<string, number> = {}
  for (const [name, rule] of Object.entries(settingRules)) {
    const value = raw[name]
    if (value !== undefined && rule.format.range !== undefined && Number(value) !== Number(rule.default)) {
      changed[name] = Number(value)
    }
  }
  return changed
}
