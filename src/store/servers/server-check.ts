import { ConnectionTimeoutError, type RedisClientOptions } from '@redis/client'
import type { CheckResult } from '../../config/setting-rule.ts'
import { adviceFor, ADVICE, writeRefusalOf } from './causes.ts'
import { names } from '../../peers/names.ts'
import { clusterSize, MEMBER_ADVICE } from '../links/cluster-slots.ts'
import { withConnection, type Connection, type ServerInfo } from '../links/connection.ts'
import { CommandTimeout } from '../../time/deadline.ts'
import { tryRights, type Uses } from './rights.ts'
import { mayLackDatabase, replyCode } from '../links/redis-link.ts'
import { readMemory, replicationWarnings } from './server-facts.ts'
import { clockWarnings } from './store-clock.ts'

/** The first version with PEXPIRETIME. The others begin above it. */
const OLDEST_REDIS = 7
const setting = 'REDIS_URL'
/** Share of maxmemory in use from which the check warns. */
const NEARLY_FULL = 0.9
/** By the name that a server gives itself. */
const PRODUCTS: Readonly<Record<string, string>> = { redis: 'Redis', valkey: 'Valkey', redict: 'Redict' }

const DATABASE_ADVICE =
  'Check the number at the end of REDIS_URL: Redis has the databases 0 to 15 by default (databases), a Cluster and many services only 0.'

/** The findings at one server. */
export interface Findings {
  readonly results: readonly CheckResult[]
  /** How far the clock of this machine is ahead of the server's (ms), as far as it tells. */
  readonly hereAheadMs: number | undefined
  /** Whether it answered at all. */
  readonly isReached: boolean
}

/** Whether the store can work with a server. */
export function serves({ results }: Findings): boolean {
  return results.every(({ is }) => is !== 'failed')
}

/** The name and the role that a server gives itself, for which no right is needed (HELLO). */
interface Identity {
  readonly server: string
  readonly version: string
  readonly role: string
}

/**
 * Connects to a master, tries there what the store does, and judges what it finds.
 * @param keyOf a key for the trials, of a slot of this master in a Cluster
 * @returns at least one result. Never rejects
 */
export async function checkServer(
  options: RedisClientOptions,
  name: string,
  key: string,
  uses: Uses,
): Promise<Findings> {
  let hereAheadMs: number | undefined
  try {
    const results = await withConnection(options, uses.timeoutMs, async (connection) => {
      hereAheadMs = await compareClocks(connection)
      const identity = await identify(connection)
      const info = await connection.info('default').catch(withoutInfo)
      const what = `${name} is ${PRODUCTS[identity.server] ?? identity.server} ${identity.version}`
      const unfit = judgeIdentity(identity, what)
      if (unfit !== undefined) return [unfit]
      // Only the member of a Cluster that is reached as if it were alone has to be tracked.
      const size = uses.tracks ? await clusterSize(connection).catch(() => 1) : 1
      if (size > 1) return [failed(`${name} is one of ${size} masters of a Cluster`, MEMBER_ADVICE)]
      const rights = await tryRights(connection, key, uses)
      return [
        ...judge(rights, info, what),
        ...replicationWarnings(info, uses.replicas).map((message) => warning(`${name}: ${message}`)),
        ...rights.others.map(({ names, advice }) =>
          warning(`${name} forbids ${names.join(', ')} to this user`, advice),
        ),
      ]
    })
    return { results, hereAheadMs, isReached: true }
  } catch (error) {
    const isDatabase = mayLackDatabase(error, options)
    const result = isDatabase
      ? failed(`${name} may not have this database (ERR)`, DATABASE_ADVICE)
      : unreachable(error, name)
    return { results: [result], hereAheadMs, isReached: replyCode(error) !== undefined }
  }
}

/** How far the clock of this machine is ahead of the server's (ms). Undefined where the server does not tell its time. */
async function compareClocks(connection: Connection): Promise<number | undefined> {
  const sentAt = Date.now()
  const reply = await connection.sendCommand(['TIME']).catch(() => undefined)
  const [seconds, microseconds] = (reply ?? []) as [string?, string?]
  return seconds === undefined
    ? undefined
    : (sentAt + Date.now()) / 2 - Number(seconds) * 1000 - Number(microseconds) / 1000
}

/** Warnings of clocks that differ. */
export function compareAll(findings: readonly Findings[]): CheckResult[] {
  const all = findings.flatMap(({ hereAheadMs }) => hereAheadMs ?? []).toSorted((one, other) => one - other)
  const [least, median, most] = [all[0], all[Math.floor(all.length / 2)], all.at(-1)]
  if (least === undefined || median === undefined || most === undefined) return []
  return clockWarnings(median, most - least).map((message) => warning(message))
}

async function identify(connection: Connection): Promise<Identity> {
  const reply = await connection.sendCommand(['HELLO'])
  return { server: '', version: '', role: '', ...(reply as Partial<Identity>) }
}

function withoutInfo(error: unknown): ServerInfo {
  if (replyCode(error) === 'NOPERM' || replyCode(error) === 'ERR') return {}
  throw error
}

function judgeIdentity({ server, version, role }: Identity, what: string): CheckResult | undefined {
  if (server === 'redis' && Number.parseInt(version, 10) < OLDEST_REDIS) {
    return failed(what, `Redis ${OLDEST_REDIS} or newer is needed.`)
  }
  if (role !== 'master') return failed(`${what}, but a replica, which takes no writes`, ADVICE['READONLY'])
  return undefined
}

function judge(
  { needs, isEvalUnknown, refusal }: Awaited<ReturnType<typeof tryRights>>,
  info: ServerInfo,
  what: string,
): CheckResult[] {
  if (needs.length > 0) {
    const names = needs.join(', ')
    if (isEvalUnknown) return [failed(`${what}, but it does not know ${names}`, ADVICE['UNKNOWN'])]
    const advice = ADVICE[names === 'CLIENT TRACKING' ? 'NOTRACKING' : 'NOPERM']
    return [failed(`${what}, but this user has no right to ${names}`, advice)]
  }
  const results = memoryWarnings(info, what)
  if (refusal !== undefined) results.unshift(refusedWrite(what, refusal))
  return results.length > 0 ? results : [{ is: 'ok', setting, message: `${what}, a master that takes writes` }]
}

function refusedWrite(what: string, refusal: string): CheckResult {
  const isRefusal = writeRefusalOf(refusal) !== undefined
  const text = isRefusal ? `${what}, which refuses writes (${refusal})` : `${what}, which does not serve (${refusal})`
  // A full server still lets sessions go on and log out. A server that accepts no writes at all is of no use.
  return refusal === 'OOM' ? warning(text, ADVICE['OOM']) : failed(text, ADVICE[refusal])
}

function memoryWarnings(info: ServerInfo, what: string): CheckResult[] {
  const warnings: CheckResult[] = []
  const { maxmemory_policy: policy = 'noeviction' } = info
  if (policy !== 'noeviction') {
    const advice = 'Set maxmemory-policy to noeviction. Otherwise Redis logs users out when memory is short.'
    warnings.push(warning(`${what}, which may drop sessions (${policy})`, advice))
  }
  const { usedBytes, maxBytes } = readMemory(info)
  if (maxBytes > 0 && usedBytes > NEARLY_FULL * maxBytes) {
    const percent = Math.round((usedBytes / maxBytes) * 100)
    const advice = 'Raise maxmemory (REDIS_MAXMEMORY with compose), or find what fills it. A full Redis refuses logins.'
    warnings.push(warning(`${what}, which uses ${percent} % of its maxmemory`, advice))
  }
  return warnings
}

/** The result for a server that cannot be asked, with its remedy. */
export function unreachable(error: unknown, name: string): CheckResult {
  const isLate = error instanceof ConnectionTimeoutError || error instanceof CommandTimeout
  const host = name.slice(0, name.lastIndexOf(':'))
  // A lookup that is still running is the reason why there is no connection yet.
  const late = names.isUnresolved(host) ? 'EAI_AGAIN' : 'ETIMEDOUT'
  const code = isLate ? late : ((error as { code?: string }).code ?? replyCode(error) ?? 'error')
  const advice = replyCode(error) === undefined ? adviceAbout(code) : adviceFor(code)
  return failed(`${name} cannot be used (${code})`, advice ?? adviceAbout(code))
}

function adviceAbout(code: string): string {
  if (/^(ENOTFOUND|EAI_AGAIN)$/.test(code)) return 'Check the address in REDIS_URL, and DNS on this machine.'
  if (/^(ENETUNREACH|EHOSTUNREACH|EADDRNOTAVAIL)$/.test(code)) {
    return 'Check the address in REDIS_URL, and the network of this machine, which has no route there.'
  }
  return 'Check the address in REDIS_URL, whether it uses TLS (rediss://), and the network on the way there.'
}

/** A fault that an operator should put right although the server works. */
export function warning(message: string, advice?: string): CheckResult {
  return { is: 'warning', setting, message, ...(advice !== undefined && { advice }) }
}

/** A fault with which it does not. */
export function failed(message: string, advice?: string): CheckResult {
  return { is: 'failed', setting, message, ...(advice !== undefined && { advice }) }
}
