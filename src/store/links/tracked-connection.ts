import { randomUUID } from 'node:crypto'
import type { RedisClientOptions } from '@redis/client'
import { clusterSize, MEMBER_ADVICE } from './cluster-slots.ts'
import { beforeDeadline } from '../../time/deadline.ts'
import { CONNECTION, newConnection, SOCKET, withConnection, type Connection } from './connection.ts'
import { probeKey } from '../keys.ts'
import { NO_MASTER } from '../servers/link-health.ts'
import { MasterProbe } from '../servers/master-probe.ts'
import type { MasterReport } from '../servers/master-report.ts'
import { mayLackDatabase, replyCode, type LinkEvents, type RedisCommands } from './redis-link.ts'

/** Timeout for connecting, and again for preparing the connection: a server may accept it and never reply. */
const OPEN_MS = 2500
const CLOSE_MS = 1000

/**
 * One connection to one server, which reports changes to the keys that were read over it (CLIENT TRACKING). Once lost,
 * it does not reconnect.
 *
 * NOLOOP: the server does not report the connection's own writes, but stops watching their keys all the same. So a
 * writer must forget the key, or read it in the same step after writing. When the table of watched keys is full, the
 * server evicts a key to make room for one that is read here, and does not report that either. So it watches only what
 * must be watched (OPTOUT), and never a key that a stranger made up.
 */
export class TrackedConnection {
  readonly #connection: Connection
  readonly #options: RedisClientOptions
  /** One of its own, so that its probes do not concern other connections, which would be told of each change. */
  readonly #probe = new MasterProbe(probeKey(randomUUID()))

  constructor(options: RedisClientOptions) {
    this.#options = options
    const socket = { ...options.socket, ...SOCKET, reconnectStrategy: false }
    // The probe takes the place of the pings of the library.
    const tracking = { ...options, ...CONNECTION, pingInterval: 0, emitInvalidate: true, socket }
    this.#connection = newConnection(tracking as RedisClientOptions)
  }

  /** @throws Error when no server is there, or the server is not ready or not a master */
  async open(events: Pick<LinkEvents, 'changed' | 'lost'>): Promise<MasterReport | undefined> {
    let isOpen = false
    // Until then it is this method that rejects, and knows more.
    const lost = (reason: string): void => void (isOpen && events.lost(reason))
    this.#connection
      .on('error', (error: Error) => lost(reasonOf(error, this.#options)))
      .on('end', () => lost('closed'))
      .on('invalidate', (key: Buffer | string | null) => events.changed(key?.toString()))
    try {
      await beforeDeadline(OPEN_MS, this.#connection.connect())
    } catch (error) {
      throw (await this.#tracks(error)) ? error : withCode('NOTRACKING')
    }
    const preparing = Promise.all([
      // The ACL may forbid ROLE. Then the first write shows whether the server is a master.
      this.#connection.role().catch(() => undefined),
      this.#connection.sendCommand(['CLIENT', 'TRACKING', 'ON', 'OPTOUT', 'NOLOOP']),
      this.probe(),
      // The ACL may forbid this. Then the refusal of the keys that others have (MOVED) shows it.
      clusterSize(this.#connection).catch(() => 1),
    ])
    const [[role] = ['master'], , report, size] = await beforeDeadline(OPEN_MS, preparing)
    if (size > 1) throw new Error(`it is one of ${size} masters of a Cluster. ${MEMBER_ADVICE}`)
    if (role !== 'master') throw new Error(`it is a ${role}`)
    if (report !== undefined && NO_MASTER.has(report.refusal ?? '')) throw withCode(report.refusal)
    isOpen = true
    return report
  }

  /** @throws Error when the server does not reply */
  probe(): Promise<MasterReport | undefined> {
    return this.#probe.ask(this.#connection)
  }

  /**
   * Whether it was not for want of tracking that opening failed. The library asks for it then, and does not say what was
   * refused.
   */
  async #tracks(error: unknown): Promise<boolean> {
    const code = replyCode(error)
    if (code !== 'NOPERM' && code !== 'ERR') return true
    const isRefused = withConnection(this.#options, OPEN_MS, (connection) =>
      connection.sendCommand(['CLIENT', 'TRACKING', 'ON']).then(
        () => false,
        (refusal: unknown) => replyCode(refusal) !== undefined,
      ),
    )
    return !(await isRefused.catch(() => false))
  }

  commands(): RedisCommands {
    return this.#connection
  }

  /** For a single command whose keys the server does not watch. */
  untracked(): Connection {
    // The ACL may forbid this. Then the server watches the keys needlessly.
    this.#connection.sendCommand(['CLIENT', 'CACHING', 'NO']).catch(() => undefined)
    return this.#connection
  }

  async close(): Promise<void> {
    if (this.#connection.isReady) await beforeDeadline(CLOSE_MS, this.#connection.close()).catch(() => undefined)
    this.drop()
  }

  /** Closes without waiting for anything, also when the library still waits for replies. Does nothing the second time. */
  drop(): void {
    this.#connection.destroy()
  }
}

function withCode(code: string | undefined): Error {
  return Object.assign(new Error(code), { code })
}

/** A short reason for an error of a connection with these options, for the log. */
export function reasonOf(error: Error & { code?: string }, options: RedisClientOptions = {}): string {
  if (mayLackDatabase(error, options)) return 'ERR: the database at the end of REDIS_URL may not exist'
  return replyCode(error) ?? error.code ?? (error.name === 'Error' ? error.message : error.name)
}
