import { randomUUID } from 'node:crypto'
import type { RedisClientOptions } from 'redis'
import type { Finding } from '../finding.ts'
import { askSentinel } from './ask-sentinel.ts'
import { probeKey } from './keys.ts'
import { parseRedisUrl, type RedisAddress, type RedisNode } from './redis-address.ts'
import { connection, delay, nodeOptions } from './redis-link.ts'

/** PEXPIRETIME and the like are of Redis 7. */
const OLDEST_REDIS = 7
const setting = 'REDIS_URL'

/** Looks whether the session store is there and fit, within `patienceMs`. One finding for each server that is named. */
export async function probeRedis(redisUrl: string, patienceMs: number): Promise<Finding[]> {
  const address = parseRedisUrl(redisUrl)
  switch (address?.is) {
    case undefined:
      return [{ is: 'failed', setting, says: 'no address of a Redis' }]
    case 'single': {
      const { hostname, port } = new URL(address.url)
      const where = `${hostname}:${port || 6379}`
      return [await probeServer({ url: address.url }, where, { isMaster: true, patienceMs })]
    }
    case 'cluster': {
      const look = (node: RedisNode) =>
        probeServer(nodeOptions(node, address.access), named(node), { isMaster: false, patienceMs })
      return Promise.all(address.nodes.map(look))
    }
    case 'sentinel':
      return [await probeSentinels(address, patienceMs)]
  }
}

async function probeSentinels(
  { nodes, access, master: name }: Extract<RedisAddress, { is: 'sentinel' }>,
  patienceMs: number,
): Promise<Finding> {
  const answers = await Promise.all(nodes.map((node) => askSentinel(node, access, name)))
  const master = answers.find((answer) => answer !== undefined)
  if (master === undefined) {
    const advice = 'Check the Sentinels, and the name of the master at the end of REDIS_URL.'
    return {
      is: 'failed',
      setting,
      says: `no Sentinel of ${nodes.map(named).join(', ')} names a master "${name}"`,
      advice,
    }
  }
  return probeServer(nodeOptions(master, access), named(master), { isMaster: true, patienceMs })
}

const named = ({ host, port }: RedisNode): string => `${host}:${port}`

/** @param look.isMaster it must be one, and takes a write; in a cluster any node may be named, and any key be elsewhere */
async function probeServer(
  options: RedisClientOptions,
  where: string,
  look: { readonly isMaster: boolean; readonly patienceMs: number },
): Promise<Finding> {
  const socket = { ...options.socket, connectTimeout: look.patienceMs, reconnectStrategy: false }
  const client = connection({ ...options, socket } as RedisClientOptions)
  client.on('error', () => undefined)
  const examine = async (): Promise<Finding> => {
    await client.connect()
    await client.ping()
    const info = parseInfo(await client.info())
    if (look.isMaster && info['role'] === 'master') {
      const key = probeKey(randomUUID())
      await client.set(key, '', { expiration: { type: 'PX', value: look.patienceMs } })
      await client.del(key)
    }
    return judge(info, where, look.isMaster)
  }
  const tooLate = delay(look.patienceMs).then(() => {
    throw Object.assign(new Error('timeout'), { code: 'ETIMEDOUT' })
  })
  try {
    return await Promise.race([examine(), tooLate])
  } catch (error) {
    return unreachable(error, where)
  } finally {
    tooLate.catch(() => undefined)
    if (client.isOpen) client.destroy()
  }
}

function judge(info: Readonly<Record<string, string>>, where: string, mustBeMaster: boolean): Finding {
  const { redis_version: version = '', role, maxmemory, maxmemory_policy: policy } = info
  const says = `${where} is Redis ${version}`
  if (Number.parseInt(version, 10) < OLDEST_REDIS) {
    return { is: 'failed', setting, says, advice: `Redis ${OLDEST_REDIS} or newer is needed.` }
  }
  if (mustBeMaster && role !== 'master') {
    const advice = 'Name the master, or let Sentinels name it: redis+sentinel://host:port/master-name.'
    return { is: 'failed', setting, says: `${says}, but a replica, which takes no writes`, advice }
  }
  if (maxmemory !== '0' && policy !== 'noeviction') {
    const advice = 'Set maxmemory-policy to noeviction: otherwise users are logged out when memory is short.'
    return { is: 'warning', setting, says: `${says}, which may drop sessions (${policy})`, advice }
  }
  return { is: 'ok', setting, says: mustBeMaster ? `${says}, a master that takes writes` : says }
}

/** The answer of INFO: lines of `name:value`. */
function parseInfo(text: string): Record<string, string> {
  return Object.fromEntries(text.split('\r\n').map((line) => line.split(/:(.*)/s, 2)))
}

function unreachable(error: unknown, where: string): Finding {
  const { code, message } = error as { code?: string; message: string }
  // Redis names its refusals in the first word (redis.io/docs/reference/protocol-spec: simple errors).
  const kind = code ?? /^[A-Z]+/.exec(message)?.[0] ?? 'error'
  const advice = /^(NOAUTH|WRONGPASS|NOPERM)$/.test(kind)
    ? 'Check user and password in REDIS_URL, and what this user may do (ACL).'
    : 'Check the address in REDIS_URL, whether it speaks TLS (rediss://), and the network between here and there.'
  return { is: 'failed', setting, says: `${where} does not serve us (${kind})`, advice }
}
