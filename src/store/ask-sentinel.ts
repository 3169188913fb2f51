import type { RedisClientOptions } from 'redis'
import type { RedisAccess, RedisNode } from '../config/redis-address.ts'
import { connection, delay, nodeOptions } from './redis-link.ts'

/** How long one Sentinel may take to answer. */
const SENTINEL_TIMEOUT_MS = 1000

/** Which server a Sentinel calls the master of this name. Undefined when it does not answer, or knows none. */
export async function askSentinel(
  sentinel: RedisNode,
  access: RedisAccess,
  name: string,
): Promise<RedisNode | undefined> {
  const { tls, password } = access
  const master = await askAs(sentinel, access, name)
  // Many Sentinels have no password although their servers do, and refuse one.
  return master ?? (password === undefined ? undefined : askAs(sentinel, { tls }, name))
}

async function askAs(sentinel: RedisNode, access: RedisAccess, name: string): Promise<RedisNode | undefined> {
  const options = nodeOptions(sentinel, access)
  const socket = { ...options.socket, connectTimeout: SENTINEL_TIMEOUT_MS, reconnectStrategy: false }
  const client = connection({ ...options, socket } as RedisClientOptions)
  client.on('error', () => undefined)
  const question = ['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name]
  const answer = client.connect().then(() => client.sendCommand(question))
  try {
    const [host, port] = (await Promise.race([answer, delay(SENTINEL_TIMEOUT_MS)])) as unknown as [
      unknown,
      unknown,
    ]
    return { host: String(host), port: Number(port) }
  } catch {
    return undefined
  } finally {
    if (client.isOpen) client.destroy()
  }
}
