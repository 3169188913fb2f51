import { isOn } from './setting-rule.ts'
import { SECRET_SETTINGS, settingRules } from './settings.ts'

const SETTINGS: readonly string[] = Object.keys(settingRules)
const READ: readonly string[] = [...SETTINGS, ...SECRET_SETTINGS.map((name) => `${name}_FILE`)]
/** Shorter names have too many neighbours that mean something else, such as HOME. */
const MIN_LENGTH = 6

/**
 * Returns warnings about variables that nothing reads, although their names resemble those of settings: a setting that is
 * misspelt would otherwise silently do nothing.
 * @param names of the variables that are set; most of an environment is not meant for this server
 */
export function misspeltSettings(names: readonly string[]): string[] {
  return names.flatMap((name) => {
    if (READ.includes(name) || OTHER_SIGNALS.test(name)) return []
    if (name.endsWith('_FILE') && SETTINGS.includes(name.slice(0, -'_FILE'.length))) {
      return `${name} is not read: only ${SECRET_SETTINGS.join(', ')} can be in a file`
    }
    // By one or two changes of a character; two only where the name is long.
    const most = name.length < 12 ? 1 : 2
    const meant = name.length < MIN_LENGTH ? undefined : READ.find((setting) => isWithin(most, name, setting))
    return meant === undefined ? [] : `${name} is not a setting: did you mean ${meant}?`
  })
}

/** Whether the Levenshtein distance of two texts is at most this. */
function isWithin(most: number, one: string, other: string): boolean {
  if (Math.abs(one.length - other.length) > most) return false
  let same = 0
  while (same < one.length && one[same] === other[same]) same++
  const [rest, otherRest] = [one.slice(same), other.slice(same)]
  if (rest === otherRest) return true
  if (most === 0) return false
  const [shorter, otherShorter] = [rest.slice(1), otherRest.slice(1)]
  return (
    isWithin(most - 1, shorter, otherShorter) ||
    isWithin(most - 1, shorter, otherRest) ||
    isWithin(most - 1, rest, otherShorter)
  )
}

/** Settings that only matter together with another one, by how their names begin. */
const NEEDS: Readonly<Record<string, string>> = {
  FEED_: 'PUBLIC_FEED=shared',
  UPSTREAM_BUDGET_: 'UPSTREAM_BUDGET',
  STATIC_CSP: 'STATIC_DIR',
  JWKS_URL: 'OIDC=true',
  IDENTITY_CLAIMS: 'OIDC=true',
  END_SESSION_URL: 'OIDC=true',
  ID_TOKEN_HINT: 'OIDC=true',
  BACKCHANNEL_FROM: 'BACKCHANNEL_LOGOUT=true',
  BACKCHANNEL_WITHOUT_SID: 'BACKCHANNEL_LOGOUT=true',
}
/** A fact about the deployment, which holds without a budget too: deploy/kubernetes sets it for all. */
const INSTANCES = 'UPSTREAM_BUDGET_INSTANCES'
/** The variables of OpenTelemetry for other signals than traces. They resemble those of traces, and are no mistakes. */
const OTHER_SIGNALS = /^OTEL_.*(?:METRIC|LOG|BLRP)/
/** Where traces are sent. It is gone where there are none (`withoutUnusedTraces`). */
const ENDPOINT = /^OTEL_EXPORTER_OTLP_(?:TRACES_)?ENDPOINT$/
const PROXY = /^(?:https?|all)_proxy$/i

/**
 * Returns warnings about variables that are set and do nothing: settings that need another one, and proxies for outgoing
 * connections. Contains no value, since the address of a proxy may have a password.
 */
export function settingsWithoutEffect(raw: Readonly<Record<string, string>>): string[] {
  const dependent = Object.entries(NEEDS).flatMap(([start, needs]) => {
    const [name = '', value] = needs.split('=')
    const set = SETTINGS.filter(
      (setting) => setting.startsWith(start) && setting !== INSTANCES && raw[setting] !== undefined,
    )
    const isMet =
      value === undefined ? raw[name] !== undefined : raw[name] === value || (value === 'true' && isOn(raw[name] ?? ''))
    return isMet || set.length === 0 ? [] : `${set.join(', ')}: no effect without ${needs}`
  })
  const proxies = Object.keys(raw).filter((name) => PROXY.test(name))
  const unread = Object.keys(raw).filter(
    (name) => name.startsWith('OTEL_') && !READ.includes(name) && !OTHER_SIGNALS.test(name),
  )
  const hasTraces = unread.length > 0 && Object.keys(raw).some((name) => ENDPOINT.test(name))
  return [
    ...dependent,
    ...proxies.map((name) => `${name} is not obeyed: this server connects directly`),
    ...(hasTraces ? unread : []).map((name) => `${name} is not obeyed (docs/operating/traces.md)`),
  ]
}
