import type { RedisClientOptions } from 'redis'
import {
  backoffMs,
  delay,
  type LinkEvents,
  type MasterCommands,
  type RedisCommands,
  type RedisLink,
} from './redis-link.ts'
import { ReplicaCheck } from './replica-check.ts'
import { reasonOf, TrackedConnection } from './tracked-connection.ts'

/** A server that is, or should be, the master. */
export interface MasterServer {
  /** Tells one server from another. */
  readonly name: string
  readonly options: RedisClientOptions
}

/** Who knows where the master is. */
export interface MasterFinder {
  /** Undefined when nobody can say just now. */
  find(): Promise<MasterServer | undefined>
}

/** How often it is asked whether the master is still where it was. */
const LOOK_EVERY_MS = 1000

interface Serving {
  readonly replicas: ReplicaCheck
  readonly end: (reason: string) => void
}

/**
 * The link to the master, wherever it is: one connection whose changes are heard, opened anew after every loss. Not
 * node-redis's own reconnecting, nor its createSentinel(): those would come back to a server that was demoted, and the
 * latter neither hears of changes nor fails at once, but queues and acts later.
 */
export class MasterLink implements RedisLink {
  readonly tracks = true
  readonly #finder: MasterFinder
  #connection: TrackedConnection | undefined
  /** While the connection is good. */
  #serving: Serving | undefined
  #isClosed = false

  constructor(finder: MasterFinder) {
    this.#finder = finder
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

  abandon(reason: string): void {
    this.#serving?.end(reason)
  }

  async isReplicated(key: string): Promise<boolean | undefined> {
    return this.#serving === undefined ? false : this.#serving.replicas.ask(key)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#serving?.replicas.close()
    await this.#connection?.close()
  }

  #master(): TrackedConnection {
    if (this.#connection === undefined || this.#serving === undefined) throw new Error('there is no master')
    return this.#connection
  }

  async #run(events: LinkEvents, connected: () => void): Promise<void> {
    for (let tries = 0; !this.#isClosed; tries++) {
      const server = await this.#finder.find()
      if (server === undefined) events.lost('no Sentinel names a master')
      else if (await this.#stayWith(server, events, connected)) tries = 0
      if (!this.#isClosed) await delay(backoffMs(tries))
    }
    connected()
  }

  /** Serves from this server until it is lost, or no longer the master. True when it ever served. */
  async #stayWith(server: MasterServer, events: LinkEvents, connected: () => void): Promise<boolean> {
    const connection = (this.#connection = new TrackedConnection(server.options))
    const lost = Promise.withResolvers<void>()
    const stage = { is: 'connecting' as 'connecting' | 'serving' | 'over' }
    const end = (reason: string): void => {
      if (stage.is === 'over') return
      stage.is = 'over'
      events.lost(reason)
      lost.resolve()
    }
    try {
      await connection.open({
        alive: () => stage.is === 'serving' && events.alive(),
        changed: (key) => events.changed(key),
        lost: end,
      })
    } catch (error) {
      end(reasonOf(error as Error))
    }
    if (this.#isOver(stage)) {
      connection.drop()
      return false
    }
    const replicas = new ReplicaCheck(server.options)
    this.#serving = { replicas, end }
    stage.is = 'serving'
    events.up()
    connected()
    while (!this.#isOver(stage)) {
      await Promise.race([delay(LOOK_EVERY_MS), lost.promise])
      const named = this.#isOver(stage) ? undefined : await this.#finder.find()
      if (named !== undefined && named.name !== server.name) end('the master was replaced')
    }
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
