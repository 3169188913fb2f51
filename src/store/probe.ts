import { randomUUID } from 'node:crypto'
import type { RedisClientOptions } from 'redis'
import type { CheckResult } from '../config/check-result.ts'
import { askSentinel } from './ask-sentinel.ts'
import { probeKey } from './keys.ts'
import { parseRedisUrl, type RedisAddress, type RedisNode } from '../config/redis-address.ts'
import { connection, delay, nodeOptions, replyCode, type Connection } from './redis-link.ts'
import { parseInfo, readMemory } from './server-facts.ts'
import type { WriteRefusal } from '../telemetry/store-observer.ts'
import { REFUSAL_ADVICE, writeRefusalOf } from './write-refusals.ts'

/** PEXPIRETIME and the like are of Redis 7. */
const OLDEST_REDIS = 7
const setting = 'REDIS_URL'
/** Of maxmemory, from where on it is time to act. */
const NEARLY_FULL = 0.9

/** Looks whether the session store is there and fit, within `patienceMs`. At least one finding for each server that is named. */
export async function probeRedis(redisUrl: string, patienceMs: number): Promise<CheckResult[]> {
  const address = parseRedisUrl(redisUrl)
  switch (address?.is) {
    case undefined:
      return [{ is: 'failed', setting, message: 'no address of a Redis' }]
    case 'single': {
      const { hostname, port } = new URL(address.url)
      const where = `${hostname}:${port || 6379}`
      return probeServer({ url: address.url }, where, { isMaster: true, patienceMs })
    }
    case 'cluster': {
      const look = (node: RedisNode) =>
        probeServer(nodeOptions(node, address.access), named(node), { isMaster: false, patienceMs })
      return (await Promise.all(address.nodes.map(look))).flat()
    }
    case 'sentinel':
      return probeSentinels(address, patienceMs)
  }
}

async function probeSentinels(
  { nodes, access, master: name }: Extract<RedisAddress, { is: 'sentinel' }>,
  patienceMs: number,
): Promise<CheckResult[]> {
  const answers = await Promise.all(nodes.map((node) => askSentinel(node, access, name)))
  const master = answers.find((answer) => answer !== undefined)
  if (master === undefined) {
    const advice = 'Check the Sentinels, and the name of the master at the end of REDIS_URL.'
    const message = `no Sentinel of ${nodes.map(named).join(', ')} names a master "${name}"`
    return [{ is: 'failed', setting, message, advice }]
  }
  return probeServer(nodeOptions(master, access), named(master), { isMaster: true, patienceMs })
}

const named = ({ host, port }: RedisNode): string => `${host}:${port}`

/** @param look.isMaster it must be one, and takes a write; in a cluster any node may be named, and any key be elsewhere */
async function probeServer(
  options: RedisClientOptions,
  where: string,
  look: { readonly isMaster: boolean; readonly patienceMs: number },
): Promise<CheckResult[]> {
  const socket = { ...options.socket, connectTimeout: look.patienceMs, reconnectStrategy: false }
  const client = connection({ ...options, socket } as RedisClientOptions)
  client.on('error', () => undefined)
  const examine = async (): Promise<CheckResult[]> => {
    await client.connect()
    await client.ping()
    const info = parseInfo(await client.info())
    const isWritable = look.isMaster && info['role'] === 'master'
    const refusal = isWritable ? await tryToWrite(client, look.patienceMs) : undefined
    return judge(info, where, look.isMaster, refusal)
  }
  const tooLate = delay(look.patienceMs).then(() => {
    throw Object.assign(new Error('timeout'), { code: 'ETIMEDOUT' })
  })
  try {
    return await Promise.race([examine(), tooLate])
  } catch (error) {
    return [unreachable(error, where)]
  } finally {
    tooLate.catch(() => undefined)
    if (client.isOpen) client.destroy()
  }
}

/** Undefined when it took the write. @throws Error when it neither took nor refused it */
async function tryToWrite(client: Connection, lifetimeMs: number): Promise<WriteRefusal | undefined> {
  const key = probeKey(randomUUID())
  try {
    await client.set(key, '', { expiration: { type: 'PX', value: lifetimeMs } })
    await client.del(key)
    return undefined
  } catch (error) {
    const refusal = writeRefusalOf(replyCode(error) ?? '')
    if (refusal === undefined) throw error
    return refusal
  }
}

type Info = ReturnType<typeof parseInfo>

function judge(
  info: Info,
  where: string,
  mustBeMaster: boolean,
  refusal: WriteRefusal | undefined,
): CheckResult[] {
  const { redis_version: version = '', role } = info
  const message = `${where} is Redis ${version}`
  if (Number.parseInt(version, 10) < OLDEST_REDIS) {
    return [{ is: 'failed', setting, message, advice: `Redis ${OLDEST_REDIS} or newer is needed.` }]
  }
  if (mustBeMaster && role !== 'master') {
    const advice = 'Name the master, or let Sentinels name it: redis+sentinel://host:port/master-name.'
    return [{ is: 'failed', setting, message: `${message}, but a replica, which takes no writes`, advice }]
  }
  const warnings = [...refusedWrite(message, refusal), ...memoryWarnings(info, message)]
  if (warnings.length > 0) return warnings
  return [{ is: 'ok', setting, message: mustBeMaster ? `${message}, a master that takes writes` : message }]
}

function refusedWrite(message: string, refusal: WriteRefusal | undefined): CheckResult[] {
  if (refusal === undefined) return []
  // While it is full those who are logged in can go on, and log out; without any write nobody can.
  const is = refusal === 'oom' ? 'warning' : 'failed'
  const code = refusal.toUpperCase()
  return [
    { is, setting, message: `${message}, which refuses writes (${code})`, advice: REFUSAL_ADVICE[refusal] },
  ]
}

function memoryWarnings(info: Info, message: string): CheckResult[] {
  const warnings: CheckResult[] = []
  const { maxmemory_policy: policy = 'noeviction' } = info
  if (policy !== 'noeviction') {
    const advice = 'Set maxmemory-policy to noeviction: otherwise users are logged out when memory is short.'
    warnings.push({
      is: 'warning',
      setting,
      message: `${message}, which may drop sessions (${policy})`,
      advice,
    })
  }
  const { usedBytes, maxBytes } = readMemory(info)
  if (maxBytes > 0 && usedBytes > NEARLY_FULL * maxBytes) {
    const used = `uses ${Math.round((usedBytes / maxBytes) * 100)} % of its maxmemory`
    const advice =
      'Raise maxmemory (REDIS_MAXMEMORY with compose), or find what fills it: full, it refuses logins.'
    warnings.push({ is: 'warning', setting, message: `${message}, which ${used}`, advice })
  }
  return warnings
}

function unreachable(error: unknown, where: string): CheckResult {
  const { code, message } = error as { code?: string; message: string }
  // Redis names its refusals in the first word (redis.io/docs/reference/protocol-spec: simple errors).
  const kind = code ?? /^[A-Z]+/.exec(message)?.[0] ?? 'error'
  const advice = /^(NOAUTH|WRONGPASS|NOPERM)$/.test(kind)
    ? 'Check user and password in REDIS_URL, and what this user may do (ACL).'
    : 'Check the address in REDIS_URL, whether it speaks TLS (rediss://), and the network between here and there.'
  return { is: 'failed', setting, message: `${where} does not serve us (${kind})`, advice }
}
