import { randomUUID } from 'node:crypto'
import {
  RedisClient,
  RESP_TYPES,
  type RedisArgument,
  type RedisClientOptions,
  type RedisFunctions,
  type RedisModules,
  type RedisScripts,
  type TypeMapping,
} from '@redis/client'
import type { RedisAccess } from '../../config/redis-address.ts'
import { dialing } from '../../peers/dialing.ts'
import { beforeDeadline, CommandTimeout } from '../../time/deadline.ts'
import { LiveCredentials } from './live-credentials.ts'

/**
 * The protocol of every connection. Only RESP3 lets a server push invalidations over the connection itself. The library does
 * not introduce itself, which needs a right of its own, and does not follow a server's notice that it moves: it would change
 * the socket without a word, and with it lose what the server tracks for us.
 *
 * It has no timeout for commands that wait to be written: each would leave a timer and a signal behind for five seconds, and a
 * server that is silent for less is abandoned.
 */
const RESP = {
  RESP: 3,
  disableClientInfo: true,
  maintNotifications: 'disabled',
  commandOptions: { timeout: 0 },
} as const

/** Of a command whose reply has texts as bytes. */
const WITH_BYTES = { typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer } }

/** How long the replies that are pending may take before new credentials are given. */
const QUIET_MS = 600
/** Timeout for the reply to new credentials, and for the proof that replies are in step. */
const PROOF_MS = 400
/** The connections that have to be replaced are, each at some moment within this time. */
const REPLACE_MS = 5000

type SendParameters = Parameters<RedisClient<RedisModules, RedisFunctions, RedisScripts, 3, TypeMapping>['sendCommand']>

/** The fields of a reply to INFO. */
export type ServerInfo = Readonly<Record<string, string>>

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
  /** The commands that wait until the connection is authenticated anew. */
  #held: (() => void)[] | undefined

  override sendCommand<Reply>(...[words, options]: SendParameters): Promise<Reply> {
    const held = this.#held
    if (held === undefined) return super.sendCommand<Reply>(words, options)
    return new Promise((resolve) => held.push(() => resolve(super.sendCommand<Reply>(words, options))))
  }

  /**
   * Authenticates the open connection anew. Some servers (Redis 7.2 to 8.0, Redict 7.3, Valkey 8.1) send no reply to an AUTH
   * that they refuse while they have other replies to send: from then on every command would get the reply to the next one. So
   * nothing new is sent for at most a second, AUTH goes alone, and a PING with a random text then proves that replies are in
   * step. If they are not, the connection is closed before another command gets a reply. If replies are still pending after
   * {@link QUIET_MS}, nothing is given, and the connection is closed soon, so that its owner opens another one.
   * @throws Error with the reply of a server that refuses; the connection goes on as it was
   */
  async authenticate({ username, password }: RedisAccess): Promise<void> {
    if (password === undefined || this.#held !== undefined) return
    const held: (() => void)[] = (this.#held = [])
    try {
      // Replies come in the order of their commands. So with this one none is pending.
      await beforeDeadline(QUIET_MS, this.#proveStep()).catch((cause: unknown) => {
        if (cause instanceof CommandTimeout) setTimeout(() => this.destroy(), Math.random() * REPLACE_MS).unref()
        else this.destroy()
        throw cause
      })
      const reply = super.sendCommand(username === undefined ? ['AUTH', password] : ['AUTH', username, password])
      const inStep = reply.catch(() => undefined).then(() => this.#proveStep())
      await beforeDeadline(PROOF_MS, inStep).catch((cause: unknown) => {
        this.destroy()
        throw cause
      })
      await reply
    } finally {
      this.#held = undefined
      // At once and in their order: some are meant for the one that follows them.
      for (const send of held) send()
    }
  }

  /** @throws Error unless the server's next reply is the one to this command */
  async #proveStep(): Promise<void> {
    const word = randomUUID()
    if ((await super.sendCommand<string>(['PING', word])) !== word)
      throw new Error('the replies of Redis are out of step')
  }

  send(_key: string, words: RedisArgument[], hasBytes = false): Promise<unknown> {
    return this.sendCommand(words, hasBytes ? WITH_BYTES : undefined)
  }

  readMany(keys: readonly string[]): Promise<(string | null)[]> {
    return this.sendCommand(['MGET', ...keys])
  }

  get(key: string): Promise<string | null> {
    return this.sendCommand(['GET', key])
  }

  /** @returns null where the condition is not met */
  set(key: string, value: string, { expiration, condition }: SetOptions): Promise<string | null> {
    const words = ['SET', key, value, expiration.type, String(expiration.value)]
    return this.sendCommand(condition === undefined ? words : [...words, condition])
  }

  eval(script: string, { keys, arguments: args }: { keys: string[]; arguments: string[] }): Promise<unknown> {
    return this.sendCommand(['EVAL', script, String(keys.length), ...keys, ...args])
  }

  /** Lines of `name:value`. */
  async info(section: string): Promise<ServerInfo> {
    const text = await this.sendCommand<string>(['INFO', section])
    return Object.fromEntries(text.split('\r\n').map((line) => line.split(/:(.*)/s, 2)))
  }

  ping(): Promise<unknown> {
    return this.sendCommand(['PING'])
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
  const { credentialsProvider } = options
  if (!(credentialsProvider instanceof LiveCredentials)) return closedForGood(new Connection({ ...RESP, ...options }))
  const { attend, ...credentials } = credentialsProvider.forConnection(nameOf(options))
  const connection = new Connection({ ...RESP, ...options, credentialsProvider: credentials })
  attend(connection)
  return closedForGood(connection)
}

/** The address of the server. */
function nameOf({ url, socket }: RedisClientOptions): string {
  if (url !== undefined) return new URL(url).host
  const { host, port } = { host: '', port: '', ...socket }
  return `${host}:${port}`
}

/**
 * Has a connection end although it was closed while TCP connected. The library opens it all the same, and it would stay open
 * for ever.
 */
function closedForGood(connection: Connection): Connection {
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
