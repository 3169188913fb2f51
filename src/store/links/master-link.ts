import { polls } from '../../time/polls.ts'
import {
  reconnectMs,
  delay,
  type LinkEvents,
  type MasterCommands,
  type MasterServer,
  type RedisCommands,
  type RedisLink,
} from './redis-link.ts'
import type { MasterReport } from '../servers/master-report.ts'
import { ReplicaCheck } from './replica-check.ts'
import { reasonOf, TrackedConnection } from './tracked-connection.ts'

/** Finds the current master. Undefined when none is known at the moment. Never rejects. */
export type FindMaster = () => Promise<MasterServer | undefined>

/** How often the link checks that the master is still the same, and that it serves. */
const CHECK_INTERVAL_MS = 1000

/**
 * The link to the master, wherever it is: one tracked connection, replaced after every loss. It uses neither node-redis's
 * own reconnecting nor its createSentinel(), since both would return to a demoted server. In addition, createSentinel()
 * does not track keys, and queues commands for later instead of failing at once.
 */
export class MasterLink implements RedisLink {
  readonly tracks = true
  readonly #findMaster: FindMaster
  #connection: TrackedConnection | undefined
  /** The server that was the master when the link last looked. */
  #latest: MasterServer | undefined
  /** Set while the connection serves. */
  #serving:
    | { readonly replicas: ReplicaCheck; readonly end: (reason: string) => void; readonly probe: () => Promise<void> }
    | undefined
  #isClosed = false

  constructor(findMaster: FindMaster) {
    this.#findMaster = findMaster
  }

  open(events: LinkEvents): Promise<void> {
    return new Promise((connected) => void this.#run(events, connected))
  }

  commands(): RedisCommands {
    return this.#master().commands()
  }

  untracked(): RedisCommands {
    return this.#master().untracked()
  }

  async readMany(keys: readonly string[]): Promise<(string | null)[]> {
    return this.#master()
      .untracked()
      .mGet([...keys])
  }

  async askMasters<Reply>(question: (master: MasterCommands) => Promise<Reply>): Promise<Reply[]> {
    return [await question(this.#master().untracked())]
  }

  masterOf(): MasterServer {
    if (this.#serving === undefined || this.#latest === undefined) throw new Error('there is no master')
    return this.#latest
  }

  probe(): void {
    void this.#serving?.probe()
  }

  masterNames(): ReadonlySet<string> {
    return new Set(this.#latest && [this.#latest.name])
  }

  anyServer(): MasterServer | undefined {
    return this.#latest
  }

  abandon(reason: string): void {
    this.#serving?.end(reason)
  }

  async isReplicated(key: string): Promise<boolean | undefined> {
    return this.#serving === undefined ? false : this.#serving.replicas.ask(key)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#serving?.replicas.close()
    this.#serving?.end('closed')
    await this.#connection?.close()
  }

  #master(): TrackedConnection {
    if (this.#connection === undefined || this.#serving === undefined) throw new Error('there is no master')
    return this.#connection
  }

  async #run(events: LinkEvents, connected: () => void): Promise<void> {
    for (let tries = 0; !this.#isClosed; tries++) {
      const server = await this.#findMaster()
      if (server === undefined) events.lost('no Sentinel names a master')
      else if (await this.#serveFrom(server, events, connected)) tries = 0
      if (!this.#isClosed) await delay(reconnectMs(tries))
    }
    connected()
  }

  /** Serves from this server until it is lost, or no longer the master. Returns whether it ever served. */
  async #serveFrom(server: MasterServer, events: LinkEvents, connected: () => void): Promise<boolean> {
    const connection = (this.#connection = new TrackedConnection(server.options))
    this.#latest = server
    const lost = Promise.withResolvers<void>()
    const stage = { is: 'connecting' as 'connecting' | 'serving' | 'over' }
    const end = (reason: string): void => {
      if (stage.is === 'over') return
      stage.is = 'over'
      events.lost(reason)
      lost.resolve()
    }
    const probed = (report: MasterReport | undefined): void => report && events.probed(server.name, report)
    try {
      probed(await connection.open({ changed: (key) => events.changed(key), lost: end }))
    } catch (error) {
      end(reasonOf(error as Error, server.options))
    }
    if (this.#isOver(stage)) {
      connection.drop()
      return false
    }
    const replicas = new ReplicaCheck(server.options)
    const probe = async (): Promise<void> => {
      const report = await connection.probe().catch(() => 'lost' as const)
      if (report === 'lost' || this.#isOver(stage)) return
      events.alive()
      probed(report)
    }
    this.#serving = { replicas, end, probe }
    stage.is = 'serving'
    events.up()
    connected()
    // Not a race of each wait against the loss: its promise would keep every one of them in memory until it settles.
    const endPolls = polls(async () => {
      const current = await this.#findMaster()
      if (current !== undefined && current.name !== server.name) end('the master was replaced')
    }, CHECK_INTERVAL_MS)
    const endProbes = polls(probe, CHECK_INTERVAL_MS)
    await lost.promise
    endPolls()
    endProbes()
    if (!this.#isClosed) {
      replicas.close()
      connection.drop()
    }
    this.#serving = undefined
    return true
  }

  #isOver({ is }: { is: 'connecting' | 'serving' | 'over' }): boolean {
    return this.#isClosed || is === 'over'
  }
}
