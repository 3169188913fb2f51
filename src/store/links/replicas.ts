import { beforeDeadline } from '../../time/deadline.ts'
import { ConfirmingServer } from './confirming-server.ts'
import type { Connection } from './connection.ts'
import type { FindMaster, MasterServer, RedisLink } from './redis-link.ts'
import { ReplicatedWrites } from './replicated-writes.ts'

/** How long a master waits for one of its replicas (WAIT). */
const WAIT_MS = 200
/** Timeout for the answer whether a replica has a write. */
const ANSWER_MS = 1000

/** Writes what expires by itself, even when the server is full. */
const MARK = `#!lua flags=allow-oom
return redis.call('SET', KEYS[1], '', 'PX', 1000)`

/** The log of the {@link Replicas}. */
interface Log {
  warn(details: object, message: string): void
  info(details: object, message: string): void
}

/** The replicas of one master. */
interface OfMaster {
  readonly find: FindMaster
  readonly marks: ReplicatedWrites
  /** Opened with the first write that they have to confirm. */
  confirming?: ConfirmingServer
  /** Whether it, or a master before it, has ever named a replica. */
  hadReplica: boolean
  /** The check that is made, and the one after it. */
  running?: Promise<boolean | undefined> | undefined
  next?: Promise<boolean | undefined> | undefined
}

/** Whether replicas have what was written, asked of the master that holds the key (WAIT). */
export class Replicas {
  readonly #link: Pick<RedisLink, 'masterOf' | 'masterNames'>
  readonly #log: Log
  readonly #masters = new Map<string, OfMaster>()
  /** Whether a master that is gone had a replica: a new one, which may be that replica, should have some, too. */
  #isReplicated = false
  /** Whether a master without replicas has lost them, although this process has never seen any. */
  #areExpected = false
  #isClosed = false

  constructor(link: Pick<RedisLink, 'masterOf' | 'masterNames'>, log: Log) {
    this.#link = link
    this.#log = log
  }

  /** From now on each master should have replicas. */
  expect(): void {
    this.#areExpected = true
  }

  /**
   * Waits briefly for a replica to have every write to the key so far, and returns whether one has. Undefined where there has been
   * no replica so far, and none is expected. Callers that ask while a check runs share the next one. Never rejects.
   */
  async have(key: string): Promise<boolean | undefined> {
    try {
      const master = this.#of(key)
      if (master.running === undefined) return await this.#check(master, key)
      // The running check may have begun before the caller wrote.
      return await (master.next ??= master.running.then(() => this.#check(master, key)))
    } catch {
      return false
    }
  }

  /**
   * Runs a command that writes a key, and waits until so many replicas have what it wrote. If it rejects, the write may have
   * happened.
   * @param redirection the error (ASK) with which the master has sent this command to another one
   * @throws Unsent at once while there is no master, and after a failure until replicas confirm again
   */
  async write<Reply>(
    key: string,
    needed: number,
    run: (connection: Connection) => Promise<Reply>,
    redirection?: string,
  ): Promise<Reply> {
    const replicas = this.#of(key, redirection)
    replicas.confirming ??= new ConfirmingServer(replicas.find, needed, {
      failed: (reason) =>
        this.#log.warn({ reason, needed }, 'calls with an Idempotency-Key are refused: no replicas confirm'),
      recovered: () => this.#log.info({}, 'calls with an Idempotency-Key are accepted again: replicas confirm'),
    })
    if (redirection === undefined) return replicas.confirming.write(key, run)
    return replicas.confirming.write(key, (connection) => {
      // Both go out together, so ASKING concerns this command.
      connection.sendCommand(['ASKING']).catch(() => undefined)
      return run(connection)
    })
  }

  /** Why the replicas of present masters confirm no writes, for an operator. */
  get failures(): string[] {
    const present = this.#link.masterNames()
    const all = [...this.#masters].flatMap(([name, { confirming }]) =>
      present.has(name) ? (confirming?.failure ?? []) : [],
    )
    return [...new Set(all)]
  }

  close(): void {
    this.#isClosed = true
    for (const name of this.#masters.keys()) this.#forget(name)
  }

  #check(master: OfMaster, key: string): Promise<boolean | undefined> {
    master.next = undefined
    const answer = beforeDeadline(ANSWER_MS, this.#mark(master, key)).catch(() => false)
    return (master.running = answer.finally(() => (master.running = undefined)))
  }

  /** WAIT covers only the writes of its own connection, so a marker is written on it after the write in question. */
  async #mark(master: OfMaster, key: string): Promise<boolean | undefined> {
    const connection = await master.marks.connection()
    // A master names its replicas, but leaves out a replica whose connection has closed.
    const [role, , known] = await connection.role()
    if (role !== 'master') {
      // After a failover, the address may lead to another server, while this connection stays with the former master.
      master.marks.leave(`it is a ${role}`)
      return false
    }
    if (!Array.isArray(known) || known.length === 0) return this.#areExpected || master.hadReplica ? false : undefined
    master.hadReplica = true
    // The braces put the marker into the same slot, and it expires by itself.
    await master.marks.write((wire) => wire.eval(MARK, { keys: [`{${key}}:ended`], arguments: [] }))
    return true
  }

  /** @throws Error while there is no master, and after the close */
  #of(key: string, redirection?: string): OfMaster {
    if (this.#isClosed) throw new Error('closed')
    const master = this.#link.masterOf(key, redirection)
    const known = this.#masters.get(master.name)
    if (known !== undefined) return known
    const present = this.#link.masterNames()
    for (const name of this.#masters.keys()) if (!present.has(name)) this.#forget(name)
    // One that is no master any more is left, and not looked for again. A new one is named only once its first slot has moved.
    const find = async () => (redirection !== undefined || this.#isMaster(master, key) ? master : undefined)
    const marks = new ReplicatedWrites(find, { replicas: 1, waitMs: WAIT_MS })
    const added: OfMaster = { find, marks, hadReplica: this.#isReplicated }
    this.#masters.set(master.name, added)
    return added
  }

  /** Whether a server is still a master. A server to which the key was moved is a master even before the Cluster names it. */
  #isMaster({ name }: MasterServer, key: string): boolean {
    try {
      return this.#link.masterNames().has(name) || this.#link.masterOf(key).name === name
    } catch {
      return false
    }
  }

  #forget(name: string): void {
    const { marks, confirming, hadReplica = false } = this.#masters.get(name) ?? {}
    this.#isReplicated ||= hadReplica
    marks?.close()
    confirming?.close()
    this.#masters.delete(name)
  }
}
