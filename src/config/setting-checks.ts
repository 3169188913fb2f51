import { availableParallelism } from 'node:os'
import { isLoopbackHost } from './setting-formats.ts'
import { mustBe, type Settings } from './settings.ts'

/** What production demands. `reported` holds the names already found wrong. */
export function productionChecks(
  raw: Readonly<Record<string, string>>,
  reported: ReadonlySet<string>,
): string[] {
  const publicUrl = raw['PUBLIC_URL']
  // One that is no address at all says nothing about where this is.
  if (publicUrl !== undefined && !URL.canParse(publicUrl)) return []
  const problems: string[] = []
  if (!isProduction(publicUrl)) return problems
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

/** What depends on several settings; only those that are right by themselves are in `settings`. */
export function crossChecks(raw: Readonly<Record<string, string>>, settings: Partial<Settings>): string[] {
  const { WORKERS = '1', DRAIN_SECONDS, DRAIN_WAIT_SECONDS = 0, PORT, OPS_PORT } = settings
  const problems: string[] = []
  if (raw['REDIS_URL'] === undefined && workerCount(WORKERS) > 1) {
    problems.push('WORKERS must be 1 without REDIS_URL: sessions in memory are those of one process')
  }
  if (DRAIN_SECONDS !== undefined && DRAIN_WAIT_SECONDS > DRAIN_SECONDS) {
    problems.push('DRAIN_WAIT_SECONDS must not be more than DRAIN_SECONDS, which it is a part of')
  }
  if (PORT !== undefined && PORT !== 0 && PORT === OPS_PORT) {
    problems.push('OPS_PORT must not be PORT: it is for operators only')
  }
  return problems
}

/** What an operator should know of settings that are allowed. */
export function settingWarnings(
  settings: Settings,
  publicUrl: string,
  frontendOrigins: ReadonlySet<string>,
): string[] {
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
  return warnings
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

/** Production is every PUBLIC_URL but a loopback one, the missing one included. */
export function isProduction(publicUrl: string | undefined): boolean {
  return publicUrl === undefined || !isLoopbackHost(new URL(publicUrl).hostname)
}

/** How many processes WORKERS means here. */
export function workerCount(value: string): number {
  return value === 'auto' ? availableParallelism() : Number(value)
}

/** Whether a flag is set. */
export const isOn = (value: string) => value === '1' || value === 'true'
