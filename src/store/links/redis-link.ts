import { setTimeout } from 'node:timers/promises'
import { ErrorReply, type RedisArgument, type RedisClientOptions } from '@redis/client'
import type { RedisAccess, RedisNode } from '../../config/redis-address.ts'
import type { Connection } from './connection.ts'
import { LiveCredentials } from './live-credentials.ts'

/** Sends commands to the master that has their keys. */
export interface RedisCommands {
  /**
   * Sends the words of one command.
   * @param key its first one, by which a Cluster finds the master
   * @param hasBytes whether texts in the reply are wanted as bytes
   */
  send(key: string, words: RedisArgument[], hasBytes?: boolean): Promise<unknown>
  /** Reads the values of several keys, in as few commands as possible. */
  readMany(keys: readonly string[]): Promise<(string | null)[]>
}

/** A server that is, or should be, a master. */
export interface MasterServer {
  /** Identifies the server among all of a link. */
  readonly name: string
  readonly options: RedisClientOptions
  /** Whether it has a key, as far as is known. */
  owns(key: string): boolean
}

/**
 * Finds a master. Undefined while there is none, or it is one no more. Never rejects.
 * @param isInVain whether the one that was found last could not be used
 */
export type FindMaster = (isInVain?: boolean) => Promise<MasterServer | undefined>

/** The questions and the reports of a link. */
export interface LinkEvents {
  /** Asks a master whether it serves, before the link is up. Rejects where it cannot be used. */
  opened(master: MasterServer, connection: Connection): Promise<void>
  /** Asks a master again, every second while it is connected. Rejects where it does not reply. */
  ask(master: MasterServer, connection: Connection): Promise<void>
  /** A master of a Cluster is not connected, or does not reply. */
  unreached(master: string, reason: string): void
  /** The link is connected, perhaps again. It has not reported the changes made before that. */
  up(): void
  /** There is no connection, or no usable one. */
  lost(reason: string): void
  /** A key that was read over this link has changed; undefined: perhaps any key has. */
  changed(key: string | undefined): void
}

/** The way to Redis. It connects, and reconnects by itself after every loss. */
export interface RedisLink {
  /** Whether the server reports changes to the keys that were read over this link (CLIENT TRACKING). */
  readonly tracks: boolean
  /** Resolves when the link is connected for the first time, or closed. */
  open(events: LinkEvents): Promise<void>
  /** @throws Error while there is no connection */
  commands(): RedisCommands
  /** For a single command whose keys the server does not track. @throws Error while there is no connection */
  untracked(): RedisCommands
  /** Asks every master. Undefined stands for one that does not reply, or refuses. Never rejects. */
  askMasters<Reply>(question: (master: Connection) => Promise<Reply>): Promise<(Reply | undefined)[]>
  /**
   * The master that has a key.
   * @param redirection the error (ASK) with which that one names another for it, to which the slot is being moved
   * @throws Error while there is none
   */
  masterOf(key: string, redirection?: string): MasterServer
  /** Probes every master, beside the probes that come by themselves. */
  probe(): void
  /** The names of the present masters. */
  masterNames(): ReadonlySet<string>
  /** A server to subscribe at, another at each call if there are several; undefined while none is known. */
  anyServer(): MasterServer | undefined
  /** Drops the server, which says that it is no master or is not ready, or is silent; then looks for the master again. */
  abandon(reason: string): void
  close(): Promise<void>
}

/** The code of a Redis error message: its first word (redis.io/docs/reference/protocol-spec: simple errors). */
export function errorCode(message: string): string | undefined {
  return /^[A-Z]+(?= |$)/.exec(message)?.[0]
}

/** The code of an error reply; undefined for any other error. */
export function replyCode(error: unknown): string | undefined {
  return error instanceof ErrorReply ? errorCode(error.message) : undefined
}

/**
 * Whether opening a connection may have failed because the server has no such database. Its reply to SELECT has
 * no code of its own.
 */
export function mayLackDatabase(error: unknown, { url }: RedisClientOptions): boolean {
  return replyCode(error) === 'ERR' && url !== undefined && !/^\/?0?$/.test(new URL(url).pathname)
}

/** A short reason for an error of a connection with these options, for the log. */
export function reasonOf(error: Error & { code?: string }, options: RedisClientOptions = {}): string {
  if (mayLackDatabase(error, options)) return 'ERR: the database at the end of REDIS_URL may not exist'
  return replyCode(error) ?? error.code ?? (error.name === 'Error' ? error.message : error.name)
}

/** Connection options for one of several servers. @param access how to reach it; that of a lasting connection may change */
export function nodeOptions({ host, port }: RedisNode, access: RedisAccess | LiveCredentials): RedisClientOptions {
  const isLive = access instanceof LiveCredentials
  const { tls, ...credentials } = isLive ? access.access : access
  const socket = tls ? { host, port, tls } : { host, port }
  return isLive ? { socket, credentialsProvider: access } : { ...credentials, socket }
}

/** Resolves after some time. The timer keeps no process alive. */
export function delay(ms: number): Promise<void> {
  return setTimeout(ms, undefined, { ref: false })
}
