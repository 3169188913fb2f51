import type { RedisClientOptions } from '@redis/client'
import { polls } from '../../time/polls.ts'
import { clusterSize, MEMBER_ADVICE } from './cluster-slots.ts'
import { withConnection, type Connection } from './connection.ts'
import { LastingConnection } from './lasting-connection.ts'
import {
  replyCode,
  type FindMaster,
  type LinkEvents,
  type MasterServer,
  type RedisCommands,
  type RedisLink,
} from './redis-link.ts'
import { Unsent } from './unsent.ts'

/** How often the link checks that the master is still the same. */
const CHECK_INTERVAL_MS = 1000
/** How long a connection may take to open while the server is silent. Another one may be the master by then. */
const OPENING_MS = 1500
/** How long the replies to what was sent may take when the link is closed. */
const CLOSE_MS = 1000
/** Timeout for the question whether it is the tracking that a server refuses. */
const TRACKING_MS = 1000

/**
 * The link to the master, wherever it is: one connection, on which the server reports changes to the keys that were read over it
 * (CLIENT TRACKING). It does not use createSentinel() of node-redis, which returns to a demoted server, keeps these reports to
 * itself, and queues commands for later instead of failing at once.
 *
 * NOLOOP: the server does not report the connection's own writes, but stops watching their keys all the same. So a
 * writer must forget the key, or read it in the same step after writing. When the table of watched keys is full, the
 * server evicts a key to make room for one that is read here, and does not report that either. So it watches only what
 * must be watched (OPTOUT), and never a key that a stranger made up.
 */
export class MasterLink implements RedisLink {
  readonly tracks = true
  readonly #findMaster: FindMaster
  #connection: LastingConnection | undefined
  /** The server that was the master when the link last looked. */
  #latest: MasterServer | undefined
  /** Whether the server that was found last has not been connected since. */
  #isInVain = false
  /** When the connection was last being opened (monotonic ms). */
  #openedAt = -Infinity
  #close: () => void = () => undefined

  constructor(findMaster: FindMaster) {
    this.#findMaster = findMaster
  }

  open(events: LinkEvents): Promise<void> {
    return new Promise((opened) => {
      this.#connection = new LastingConnection({
        find: () => this.#find(events),
        open: (connection, server) => {
          this.#openedAt = performance.now()
          return prepare(connection, this.#latest ?? server, events)
        },
        ask: (connection, server) => events.ask(server, connection),
        up: () => {
          this.#isInVain = false
          events.up()
          opened()
        },
        lost: (reason) => events.lost(reason),
      })
      const endChecks = polls(() => this.#check(), CHECK_INTERVAL_MS)
      this.#close = () => {
        endChecks()
        opened()
      }
    })
  }

  commands(): RedisCommands {
    return this.#master()
  }

  untracked(): Connection {
    const master = this.#master()
    // For the next command alone. The ACL may forbid this. Then the server watches the keys needlessly.
    master.sendCommand(['CLIENT', 'CACHING', 'NO']).catch(() => undefined)
    return master
  }

  async askMasters<Reply>(question: (master: Connection) => Promise<Reply>): Promise<(Reply | undefined)[]> {
    const ask = async () => question(this.untracked())
    return [await ask().catch(() => undefined)]
  }

  masterOf(): MasterServer {
    if (this.#latest === undefined || this.#connection?.isUp !== true) throw new Unsent(new Error('there is no master'))
    return this.#latest
  }

  probe(): void {
    void this.#connection?.ask()
  }

  masterNames(): ReadonlySet<string> {
    return new Set(this.#latest && [this.#latest.name])
  }

  anyServer(): MasterServer | undefined {
    return this.#latest
  }

  abandon(reason: string): void {
    // One that is being opened is silent until then, however long the store was away before.
    const isOpening = this.#connection?.isUp !== true && performance.now() < this.#openedAt + OPENING_MS
    if (!isOpening) this.#connection?.drop(reason)
  }

  async close(): Promise<void> {
    await this.#connection?.close(CLOSE_MS)
    this.#close()
  }

  #master(): Connection {
    if (this.#connection?.isUp !== true) throw new Unsent(new Error('there is no master'))
    return this.#connection.present
  }

  async #find(events: LinkEvents): Promise<MasterServer | undefined> {
    const master = await this.#findMaster(this.#isInVain)
    this.#isInVain = true
    if (master === undefined) events.lost('no Sentinel names a master')
    else this.#latest = master
    return master && { ...master, options: { ...master.options, emitInvalidate: true } }
  }

  async #check(): Promise<void> {
    if (this.#connection?.isUp !== true) return
    const known = this.#latest
    const current = await this.#findMaster()
    // Meanwhile the link may have found another master. Then the answer is the older one.
    if (current !== undefined && current.name !== known?.name && this.#latest === known)
      this.abandon('the master was replaced')
  }
}

/** Opens a connection. @throws Error when no server is there, or the server is not ready or not a master */
async function prepare(connection: Connection, master: MasterServer, events: LinkEvents): Promise<void> {
  connection.on('invalidate', (key: Buffer | string | null) => events.changed(key?.toString()))
  await connection.connect().catch(async (error: unknown) => {
    throw (await refusesTracking(error, master.options)) ? new Error('NOTRACKING') : error
  })
  const isServing = events.opened(master, connection)
  const [[role] = ['master'], size] = await Promise.all([
    // The ACL may forbid ROLE. Then the first write shows whether the server is a master.
    connection.role().catch(() => undefined),
    // The ACL may forbid this. Then the refusal of the keys that others have (MOVED) shows it.
    clusterSize(connection).catch(() => 1),
    connection.sendCommand(['CLIENT', 'TRACKING', 'ON', 'OPTOUT', 'NOLOOP']),
    // The role of the server explains more than its refusal.
    isServing.catch(() => undefined),
  ])
  if (size > 1) throw new Error(`it is one of ${size} masters of a Cluster. ${MEMBER_ADVICE}`)
  if (role !== 'master') throw new Error(`it is a ${role}`)
  await isServing
}

/**
 * Whether it was for want of tracking that a connection could not be opened. The library asks for it then, and does not say
 * what was refused.
 */
async function refusesTracking(error: unknown, options: RedisClientOptions): Promise<boolean> {
  const code = replyCode(error)
  if (code !== 'NOPERM' && code !== 'ERR') return false
  const isRefused = withConnection(options, TRACKING_MS, (connection) =>
    connection.sendCommand(['CLIENT', 'TRACKING', 'ON']).then(
      () => false,
      (refusal: unknown) => replyCode(refusal) !== undefined,
    ),
  )
  return isRefused.catch(() => false)
}
