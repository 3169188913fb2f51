import { setTimeout } from 'node:timers/promises'
import { ErrorReply, type RedisClientOptions } from '@redis/client'
import type { RedisAccess, RedisNode } from '../../config/redis-address.ts'
import { backoffMs } from '../../time/backoff.ts'
import type { Connection } from './connection.ts'
import type { LiveCredentials } from './live-credentials.ts'
import type { MasterReport } from '../servers/master-report.ts'

/** The commands that the store uses. */
export type RedisCommands = Pick<Connection, 'get' | 'set' | 'del' | 'eval' | 'pExpireTime'>

/** The commands that ask a master about itself. */
export type MasterCommands = Pick<Connection, 'info' | 'eval' | 'sendCommand'>

/** A server that is, or should be, a master. */
export interface MasterServer {
  /** Identifies the server among all of a link. */
  readonly name: string
  readonly options: RedisClientOptions
}

/** The events that a link reports to the store. */
export interface LinkEvents {
  /** The link is connected, perhaps again. It has not reported the changes made before that. */
  up(): void
  /** There is no connection, or no usable one. */
  lost(reason: string): void
  /** A server has shown that it is alive. */
  alive(): void
  /** What a probe of a master found; see {@link LinkEvents.alive} for whether it replied at all. */
  probed(master: string, report: MasterReport): void
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
  /** Reads values without tracking their keys, in as few commands as possible. */
  readMany(keys: readonly string[]): Promise<(string | null)[]>
  /** Asks every master. Rejects when one of them does not reply. */
  askMasters<Reply>(question: (master: MasterCommands) => Promise<Reply>): Promise<Reply[]>
  /** The master that has a key. @throws Error while there is none */
  masterOf(key: string): MasterServer
  /** Probes every master, beside the probes that come by themselves. */
  probe(): void
  /** The names of the present masters. */
  masterNames(): ReadonlySet<string>
  /** A server to subscribe at, another at each call if there are several; undefined while none is known. */
  anyServer(): MasterServer | undefined
  /** Drops the server, which says that it is no master or is not ready, or is silent; then looks for the master again. */
  abandon(reason: string): void
  /**
   * Waits briefly for a replica to have every write to the key so far, and returns whether one has. Undefined where
   * there are no replicas. Uses a connection of its own, so it delays no other command.
   */
  isReplicated(key: string): Promise<boolean | undefined>
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

/** The pause before the next try to connect (ms). */
export function reconnectMs(tries: number): number {
  return backoffMs(tries, { firstMs: 100, longestMs: 1100, jitter: 0.5 })
}

/** Connection options for one of several servers. */
export function nodeOptions({ host, port }: RedisNode, access: RedisAccess): RedisClientOptions {
  const { tls, ...credentials } = access
  return { ...credentials, socket: tls ? { host, port, tls } : { host, port } }
}

/** The same for lasting connections, whose credentials may change. */
export function liveNodeOptions(node: RedisNode, credentials: LiveCredentials): RedisClientOptions {
  const { tls } = credentials.access
  return { ...nodeOptions(node, { tls }), credentialsProvider: credentials }
}

/** Resolves after some time. The timer keeps no process alive. */
export function delay(ms: number): Promise<void> {
  return setTimeout(ms, undefined, { ref: false })
}
