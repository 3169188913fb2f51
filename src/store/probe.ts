import { randomUUID } from 'node:crypto'
import type { RedisClientOptions } from '@redis/client'
import type { CheckResult } from '../config/setting-rule.ts'
import { clusterSize, distinct, MEMBER_ADVICE } from './cluster-slots.ts'
import { withConnection, type Connection } from './connection.ts'
import { probeKey } from './keys.ts'
import { parseRedisUrl, type RedisAddress, type RedisNode } from '../config/redis-address.ts'
import { askSentinel, serversOf } from './link-to.ts'
import { forbiddenCommands, forbiddenToConfirm, PERMISSION_ADVICE, WAIT_ADVICE } from './permissions.ts'
import { replicationWarnings } from './replication.ts'
import { mayLackDatabase, nodeOptions, replyCode } from './redis-link.ts'
import { parseInfo, readMemory, type ServerInfo } from './server-facts.ts'
import type { WriteRefusal } from '../telemetry/store-observer.ts'
import { REFUSAL_ADVICE, writeRefusalOf } from './write-refusals.ts'

/** The first version with PEXPIRETIME. */
const OLDEST_REDIS = 7
const setting = 'REDIS_URL'
/** Share of maxmemory in use from which the check warns. */
const NEARLY_FULL = 0.9

const DATABASE_ADVICE =
  'Check the number at the end of REDIS_URL: Redis has the databases 0 to 15 by default (databases), a Cluster and many services only 0.'
/** What the servers must be able to do, and how long that may take. */
interface ProbeOptions {
  readonly timeoutMs: number
  /** IDEMPOTENCY_REPLICAS */
  readonly replicas: number
}

/** Checks each server that REDIS_URL names, or the master that the Sentinels name. Returns at least one result for each. */
export async function probeRedis(redisUrl: string, options: ProbeOptions): Promise<CheckResult[]> {
  const address = parseRedisUrl(redisUrl)
  switch (address?.is) {
    case undefined:
      return [failed('not the address of a Redis')]
    case 'single': {
      const { hostname, port } = new URL(address.url)
      const name = `${hostname}:${port || 6379}`
      return probeServer({ url: address.url }, name, true, options)
    }
    case 'cluster': {
      const probe = (node: RedisNode) => probeServer(nodeOptions(node, address.access), nameOf(node), false, options)
      const { masters } = await serversOf(address, address.access)
      return (await Promise.all(distinct([...address.nodes, ...masters]).map(probe))).flat()
    }
    case 'sentinel':
      return probeSentinels(address, options)
  }
}

async function probeSentinels(
  { nodes, access, master: name }: Extract<RedisAddress, { is: 'sentinel' }>,
  options: ProbeOptions,
): Promise<CheckResult[]> {
  const replies = await Promise.all(nodes.map((node) => askSentinel(node, access, name)))
  const master = replies.find((reply) => reply !== undefined)
  if (master === undefined) {
    const advice = 'Check the Sentinels, and the name of the master at the end of REDIS_URL.'
    return [failed(`no Sentinel of ${nodes.map(nameOf).join(', ')} names a master "${name}"`, advice)]
  }
  return probeServer(nodeOptions(master, access), nameOf(master), true, options)
}

function nameOf({ host, port }: RedisNode): string {
  return `${host}:${port}`
}

/** @param mustBeMaster and accept a write. Not in a Cluster: a named node may be a replica, or not own the key */
async function probeServer(
  options: RedisClientOptions,
  name: string,
  mustBeMaster: boolean,
  { timeoutMs, replicas }: ProbeOptions,
): Promise<CheckResult[]> {
  try {
    return await withConnection(options, timeoutMs, async (connection) => {
      await connection.ping()
      const info = parseInfo(await connection.info('default'))
      const size = mustBeMaster ? await clusterSize(connection).catch(() => 1) : 1
      if (size > 1) return [failed(`${name} is one of ${size} masters of a Cluster`, MEMBER_ADVICE)]
      const mayWrite = mustBeMaster && info['role'] === 'master'
      const refusal = mayWrite ? await tryToWrite(connection, timeoutMs) : undefined
      const results = judge(info, name, mustBeMaster, refusal)
      results.push(...replicationWarnings(info, replicas).map((message) => warning(`${name}: ${message}`)))
      if (replicas > 0) results.push(...forbids(name, await forbiddenToConfirm(connection), WAIT_ADVICE))
      return [...results, ...forbids(name, await forbiddenCommands(connection), PERMISSION_ADVICE)]
    })
  } catch (error) {
    if (mayLackDatabase(error, options)) return [failed(`${name} may not have this database (ERR)`, DATABASE_ADVICE)]
    return [unreachable(error, name)]
  }
}

/** Returns why the server refused a write; undefined if it accepted one. @throws Error when it did neither */
async function tryToWrite(connection: Connection, lifetimeMs: number): Promise<WriteRefusal | undefined> {
  const key = probeKey(randomUUID())
  try {
    await connection.set(key, '', { expiration: { type: 'PX', value: lifetimeMs } })
    await connection.del(key)
    return undefined
  } catch (error) {
    const refusal = writeRefusalOf(replyCode(error))
    if (refusal === undefined) throw error
    return refusal
  }
}

function judge(
  info: ServerInfo,
  name: string,
  mustBeMaster: boolean,
  refusal: WriteRefusal | undefined,
): CheckResult[] {
  const { redis_version: version = '', role } = info
  const message = `${name} is Redis ${version}`
  if (Number.parseInt(version, 10) < OLDEST_REDIS) {
    return [failed(message, `Redis ${OLDEST_REDIS} or newer is needed.`)]
  }
  if (mustBeMaster && role !== 'master') {
    const advice = 'Name the master, or let Sentinels name it: redis+sentinel://host:port/master-name.'
    return [failed(`${message}, but a replica, which takes no writes`, advice)]
  }
  const warnings = memoryWarnings(info, message)
  if (refusal !== undefined) warnings.unshift(refusedWrite(message, refusal))
  if (warnings.length > 0) return warnings
  return [{ is: 'ok', setting, message: mustBeMaster ? `${message}, a master that takes writes` : message }]
}

function refusedWrite(message: string, refusal: WriteRefusal): CheckResult {
  const text = `${message}, which refuses writes (${refusal.toUpperCase()})`
  // A full server still lets sessions go on and log out. A server that accepts no writes at all is of no use.
  return refusal === 'oom' ? warning(text, REFUSAL_ADVICE.oom) : failed(text, REFUSAL_ADVICE[refusal])
}

function memoryWarnings(info: ServerInfo, message: string): CheckResult[] {
  const warnings: CheckResult[] = []
  const { maxmemory_policy: policy = 'noeviction' } = info
  if (policy !== 'noeviction') {
    const advice = 'Set maxmemory-policy to noeviction. Otherwise Redis logs users out when memory is short.'
    warnings.push(warning(`${message}, which may drop sessions (${policy})`, advice))
  }
  const { usedBytes, maxBytes } = readMemory(info)
  if (maxBytes > 0 && usedBytes > NEARLY_FULL * maxBytes) {
    const percent = Math.round((usedBytes / maxBytes) * 100)
    const advice = 'Raise maxmemory (REDIS_MAXMEMORY with compose), or find what fills it. A full Redis refuses logins.'
    warnings.push(warning(`${message}, which uses ${percent} % of its maxmemory`, advice))
  }
  return warnings
}

function unreachable(error: unknown, name: string): CheckResult {
  const code = (error as { code?: string }).code ?? replyCode(error) ?? 'error'
  const advice = /^(NOAUTH|WRONGPASS|NOPERM)$/.test(code)
    ? 'Check user and password in REDIS_URL, and what this user may do (ACL).'
    : 'Check the address in REDIS_URL, whether it uses TLS (rediss://), and the network on the way there.'
  return failed(`${name} cannot be used (${code})`, advice)
}

function forbids(name: string, commands: readonly string[], advice: string): CheckResult[] {
  return commands.length === 0 ? [] : [warning(`${name} forbids ${commands.join(', ')} to this user`, advice)]
}

function warning(message: string, advice?: string): CheckResult {
  return { is: 'warning', setting, message, ...(advice !== undefined && { advice }) }
}

function failed(message: string, advice?: string): CheckResult {
  return { is: 'failed', setting, message, ...(advice !== undefined && { advice }) }
}
