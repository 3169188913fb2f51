import { ErrorReply, RedisClient, type RedisClientOptions } from 'redis'
import type { RedisAccess, RedisNode } from '../config/redis-address.ts'

/** The protocol of every connection: the one in which a server tells what changes. */
const RESP = { RESP: 3 } as const

/** A connection of node-redis. */
export type Connection = ReturnType<typeof newConnection>

/** The commands the store is made of. */
export type RedisCommands = Pick<
  Connection,
  'get' | 'set' | 'del' | 'eval' | 'incrBy' | 'pExpireAt' | 'pExpireTime'
>

/** What a master is asked about itself. */
export type MasterCommands = Pick<Connection, 'info' | 'eval'>

/** What a link tells the store. */
export interface LinkEvents {
  /** Connected, anew: whatever changed meanwhile was not heard of. */
  up(): void
  /** No connection, or not a good one. */
  lost(reason: string): void
  /** The servers are there. */
  alive(): void
  /** A key that was read here has changed; undefined: perhaps any. */
  changed(key: string | undefined): void
}

/** The way to Redis. It connects, and goes on trying by itself after every loss. */
export interface RedisLink {
  /** Whether the server says when a key changes that was read through here (CLIENT TRACKING). */
  readonly tracks: boolean
  /** Resolves when first connected, or closed. */
  open(events: LinkEvents): Promise<void>
  /** @throws Error while there is no connection */
  commands(): RedisCommands
  /** For one command, of whose keys no change needs to be heard. @throws Error while there is no connection */
  untracked(): RedisCommands
  /** Values of keys of which no change needs to be heard, in as few commands as can be. */
  readMany(keys: readonly string[]): Promise<(string | null)[]>
  /** Asks each master something about itself. Rejects where one cannot be asked. */
  askMasters<Reply>(question: (master: MasterCommands) => Promise<Reply>): Promise<Reply[]>
  /** The server has said that it is no master, or none yet, or is silent: it is left, and looked for anew. */
  abandon(reason: string): void
  /**
   * Whether a replica has all that was written to the key so far, waited for briefly. Undefined where there are no
   * replicas. Asked on a connection of its own, which holds up nobody else.
   */
  isReplicated(key: string): Promise<boolean | undefined>
  close(): Promise<void>
}

/**
 * node-redis' `createClient` makes a class for every new set of options, with a method for each of several hundred
 * commands, those of Redis' modules too: a tenth of the time of a start, and as long again at each reconnection.
 */
const newConnection = RedisClient.factory(RESP)

/** A connection that has not been opened yet. */
export function connection(options: RedisClientOptions): Connection {
  return newConnection({ ...RESP, ...options })
}

/** Options of every connection: pinged every second, never queueing for later. */
export const CONNECTION = {
  ...RESP,
  pingInterval: 1000,
  // Fail at once while the link is down, rather than queue and act on it later.
  disableOfflineQueue: true,
} as const

/** Options of every socket. */
export const SOCKET = { connectTimeout: 2000 } as const

/** Options of a socket whose silence nobody else notices. */
export const WATCHED_SOCKET = { ...SOCKET, socketTimeout: 2500 } as const

/** What a server that refuses calls the reason: the first word of its answer. */
export function replyCode(error: unknown): string | undefined {
  return error instanceof ErrorReply ? /^[A-Z]+(?= |$)/.exec(error.message)?.[0] : undefined
}

/** Waits a little longer after every failure, and never the same time as another instance. */
export function backoffMs(tries: number): number {
  return Math.min(50 * 2 ** tries, 1000) + Math.random() * 100
}

/** How to reach one server of several. */
export function nodeOptions({ host, port }: RedisNode, access: RedisAccess): RedisClientOptions {
  const { username, password, tls } = access
  return {
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    socket: tls ? { host, port, tls } : { host, port },
  }
}

/** Resolves after some time, and keeps no process alive. */
export function delay(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms).unref())
}

/** @throws Error when it takes longer than that */
export async function within<Result>(ms: number, result: Promise<Result>): Promise<Result> {
  const late = delay(ms).then(() => Promise.reject(new Error('no answer in time')))
  return Promise.race([result, late])
}
