import {
  RedisClient,
  type RedisClientOptions,
  type RedisFunctions,
  type RedisModules,
  type RedisScripts,
  type TypeMapping,
} from '@redis/client'
import { dialing } from '../peers/dialing.ts'
import { beforeDeadline } from './deadline.ts'
import { LiveCredentials } from './live-credentials.ts'

/**
 * The protocol of every connection. Only RESP3 lets a server push invalidations over the connection itself. The library does
 * not introduce itself, which needs a right of its own, and does not follow a server's notice that it moves: it would change
 * the socket without a word, and with it lose what the server tracks for us.
 *
 * It has no timeout for commands that wait to be written: each would leave a timer and a signal behind for five seconds, and a
 * server that is silent for less is abandoned. Only the client of a Cluster keeps its own, since it keeps silent servers.
 */
const RESP = {
  RESP: 3,
  disableClientInfo: true,
  maintNotifications: 'disabled',
  commandOptions: { timeout: 0 },
} as const

/** Options of every lasting connection. */
export const CONNECTION = {
  ...RESP,
  pingInterval: 1000,
  // While the link is down a command fails at once. A queued command would take effect later, unexpectedly.
  disableOfflineQueue: true,
} as const

/** Timeout of a lasting connection, until TCP and TLS are connected. */
const CONNECT_MS = 2000

/** Socket options of every lasting connection. */
export const SOCKET = { connectTimeout: CONNECT_MS, ...dialing('redis', CONNECT_MS) }

/** How SET leaves a key. */
interface SetOptions {
  readonly expiration: { readonly type: 'PX' | 'PXAT'; readonly value: number }
  /** NX: only if the key does not exist. */
  readonly condition?: 'NX'
}

/**
 * A connection of node-redis, with the commands that this server uses. The class that the library would make has several hundred,
 * and as many again for transactions: they would take a tenth of a start, and leave 20 MiB of garbage behind.
 */
export class Connection extends RedisClient<RedisModules, RedisFunctions, RedisScripts, 3, TypeMapping> {
  get(key: string): Promise<string | null> {
    return this.sendCommand(['GET', key])
  }

  mGet(keys: readonly string[]): Promise<(string | null)[]> {
    return this.sendCommand(['MGET', ...keys])
  }

  /** @returns null where the condition is not met */
  set(key: string, value: string, { expiration, condition }: SetOptions): Promise<string | null> {
    const words = ['SET', key, value, expiration.type, String(expiration.value)]
    return this.sendCommand(condition === undefined ? words : [...words, condition])
  }

  /** @returns how many keys there were: 0 or 1 */
  del(key: string): Promise<number> {
    return this.sendCommand(['DEL', key])
  }

  /** @returns epoch ms; negative without a key, or without an expiry */
  pExpireTime(key: string): Promise<number> {
    return this.sendCommand(['PEXPIRETIME', key])
  }

  eval(script: string, { keys, arguments: args }: { keys: string[]; arguments: string[] }): Promise<unknown> {
    return this.sendCommand(['EVAL', script, String(keys.length), ...keys, ...args])
  }

  ping(): Promise<unknown> {
    return this.sendCommand(['PING'])
  }

  info(section: string): Promise<string> {
    return this.sendCommand(['INFO', section])
  }

  /** @returns a word, and what depends on it (redis.io/docs/latest/commands/role) */
  role(): Promise<readonly [name: string, ...unknown[]]> {
    return this.sendCommand(['ROLE'])
  }

  /** @returns how many replicas have the writes of this connection */
  wait(replicas: number, timeoutMs: number): Promise<number> {
    return this.sendCommand(['WAIT', String(replicas), String(timeoutMs)])
  }
}

/** A connection that is not open yet. With {@link LiveCredentials} it follows their changes while it is open. */
export function newConnection(options: RedisClientOptions): Connection {
  const connection = new Connection({ ...RESP, ...options })
  const { credentialsProvider } = options
  if (credentialsProvider instanceof LiveCredentials) {
    let endFollowing: (() => void) | undefined
    let access = credentialsProvider.access
    const end = (): void => endFollowing?.()
    connection.on('connect', () => (access = credentialsProvider.access))
    connection.on('ready', () => {
      end()
      endFollowing = credentialsProvider.follow(connection)
      // The credentials changed while the connection was opening.
      if (credentialsProvider.access !== access) credentialsProvider.authenticate(connection)
    })
    // Most connections are not opened again. One that is will be ready again.
    connection.on('error', end).on('end', end)
  }
  return closedForGood(connection)
}

/**
 * Has a connection end although it was closed while TCP connected. The library opens it all the same, and it would stay open
 * for ever, with pings that outlive even its socket.
 */
export function closedForGood<Closable extends Pick<Connection, 'isOpen' | 'destroy'> & NodeJS.EventEmitter>(
  connection: Closable,
): Closable {
  return connection.on('ready', () => {
    if (!connection.isOpen) connection.destroy()
  })
}

/**
 * Opens a connection for one use, and closes it afterwards.
 * @throws CommandTimeout when connecting and `use` together take longer than `timeoutMs`
 */
export async function withConnection<Result>(
  options: RedisClientOptions,
  timeoutMs: number,
  use: (connection: Connection) => Promise<Result>,
): Promise<Result> {
  const socket = {
    ...dialing('redis', timeoutMs),
    ...options.socket,
    connectTimeout: timeoutMs,
    reconnectStrategy: false,
  }
  const connection = newConnection({ ...options, socket } as RedisClientOptions)
  connection.on('error', () => undefined)
  try {
    return await beforeDeadline(
      timeoutMs,
      connection.connect().then(() => use(connection)),
    )
  } finally {
    if (connection.isOpen) connection.destroy()
  }
}
