import type { Changing } from '../config/changing.ts'
import { beforeDeadline, CommandTimeout } from '../time/deadline.ts'
import { within } from '../time/within.ts'
import { errorCode, replyCode, type RedisCommands, type RedisLink } from './links/redis-link.ts'
import { budgetChannel, ENDED_CHANNEL, refusalsKey } from './keys.ts'
import { LinkHealth, type StoreLog } from './servers/link-health.ts'
import { Masters } from './servers/masters.ts'
import type { Ledger, LedgerTerms } from './ledger/ledger.ts'
import { linkTo } from './links/link-to.ts'
import { readMarked, type MarkedReading } from './marked-reading.ts'
import { Replicas } from './links/replicas.ts'
import { ServerFacts } from './servers/server-facts.ts'
import {
  BURY,
  createKey,
  countScript,
  EXTEND,
  LOCK,
  READ,
  REMOVE_IF,
  REPLACE,
  runScript,
  type Ask,
  type ExtendReply,
  type ReadReply,
} from './scripts.ts'
import type { SessionIndex } from './session-index.ts'
import { subscribe, type SubscriberEvents } from './links/channel-subscriber.ts'
import type { LastingConnection } from './links/lasting-connection.ts'
import type { SharedDocument } from './shared-document.ts'
import { redisLimits } from './shared-limits.ts'
import {
  StoreUnavailable,
  type ConfirmableWrites,
  type Store,
  type StoreCondition,
  type StoredValue,
  type Tombstone,
} from './store.ts'
import type { StoreFacts, StoreObserver } from '../telemetry/store-observer.ts'

/** Timeout of a command. */
const COMMAND_DEADLINE_MS = 1500

/** {@link RedisStore.staleMs} over a link that does not track keys. */
const UNTRACKED_STALE_MS = 1000

/**
 * The store on Redis. Over a tracking link the server watches the keys that were read here, which feeds
 * {@link onChange}. If a command on such a link times out, the link becomes unhealthy: reports of changes may be missing,
 * so the listeners are notified that any key may have changed, and commands fail at once. As nothing more is written
 * then, the socket times out and the link reconnects, unless a reply arrives first.
 */
export class RedisStore implements Store {
  readonly staleMs: number
  readonly limits = redisLimits((command) => this.#ask(command))
  readonly #link: RedisLink
  readonly #listeners: ((key: string | undefined) => void)[] = []
  readonly #connecting: Promise<void>
  readonly #facts: ServerFacts
  readonly #masters: Masters
  #observer: StoreObserver | undefined
  readonly #health: LinkHealth
  readonly #askUntracked: Ask<RedisCommands> = (command) => this.#ask(() => command(this.#link.untracked()))
  readonly #listen = (channel: string, events: SubscriberEvents) => subscribe(channel, this.#link, events)
  #burials: LastingConnection | undefined
  readonly #replicas: Replicas

  private constructor(link: RedisLink, log: StoreLog) {
    this.#link = link
    this.#health = new LinkHealth(link, log, () => this.#notify(undefined))
    this.#facts = new ServerFacts(link)
    this.#replicas = new Replicas(link, log)
    this.#masters = new Masters(link, this.#health, log)
    this.staleMs = link.tracks ? Infinity : UNTRACKED_STALE_MS
    this.#connecting = link.open({
      up: () => {
        this.#health.noteAlive()
        // Changes made while the link was down were not reported.
        this.#notify(undefined)
      },
      opened: (master, connection) => this.#masters.opened(master, connection),
      ask: (master, connection) => this.#masters.ask(master, connection),
      unreached: (master, reason) => this.#masters.unreached(master, reason),
      lost: (reason) => this.#health.noteLoss(reason),
      changed: (key) => this.#notify(key),
    })
    void this.#connecting.then(() => this.#masters.warnOfRights())
  }

  /**
   * Starts to connect. The credentials of the URL may change. The store retries by itself until it is connected, and reconnects after every loss.
   * @throws TypeError for an invalid URL, which the check of the settings rules out
   */
  static connect(url: Changing<string>, log: StoreLog): RedisStore {
    return new RedisStore(linkTo(url, log), log)
  }

  /** Resolves when the store is connected for the first time, or after `waitMs`. */
  async connected(waitMs: number): Promise<void> {
    await within(waitMs, this.#connecting)
  }

  async create(key: string, value: string, expiresAt: number): Promise<boolean> {
    return (await this.#ask((redis) => createKey(redis, key, value, this.#masters.at(key, expiresAt)))) !== null
  }

  async lock(key: string, owner: string, ttlMs: number): Promise<boolean> {
    return (await this.#ask((redis) => runScript(redis, LOCK, [key], [owner, ttlMs]))) === 1
  }

  async read(key: string): Promise<StoredValue | undefined> {
    const [value, expiresAt] = await this.#ask((redis) => Promise.all([redis.get(key), redis.pExpireTime(key)]))
    return this.#storedValue(key, value, expiresAt)
  }

  async readUntracked(key: string): Promise<StoredValue | undefined> {
    const reply = await this.#askUntracked((redis) => runScript(redis, READ, [key]))
    return this.#storedValue(key, ...(reply as ReadReply))
  }

  async readMany(keys: readonly string[]): Promise<(string | undefined)[]> {
    const values = keys.length === 0 ? [] : await this.#ask(() => this.#link.readMany(keys))
    return values.map((value) => value ?? undefined)
  }

  async replace(key: string, expected: string, value: string, expiresAt: number): Promise<boolean> {
    const args = [expected, value, this.#masters.at(key, expiresAt)]
    return (await this.#change(key, (redis) => runScript(redis, REPLACE, [key], args))) === 1
  }

  async extend(key: string, expiresAt: number): Promise<StoredValue | undefined> {
    const reply = await this.#ask((redis) => runScript(redis, EXTEND, [key], [this.#masters.at(key, expiresAt)]))
    const [value, until, refusal] = reply as ExtendReply
    if (refusal !== null) this.#noteError(errorCode(refusal) ?? '')
    return this.#storedValue(key, value, until)
  }

  async remove(key: string): Promise<boolean> {
    return (await this.#change(key, (redis) => redis.del(key))) === 1
  }

  async removeIf(key: string, expected: string): Promise<boolean> {
    return (await this.#change(key, (redis) => runScript(redis, REMOVE_IF, [key], [expected]))) === 1
  }

  async bury(key: string, { key: tombstoneKey, leftKey, value, expiresAt }: Tombstone): Promise<string | undefined> {
    const keys = [key, tombstoneKey, leftKey]
    const args = [value, this.#masters.at(key, expiresAt), ENDED_CHANNEL]
    // The script reads the key. Without tracking: a stranger may have named it.
    const left = await this.#change(key, () => runScript(this.#link.untracked(), BURY, keys, args))
    return (left as string | null) ?? undefined
  }

  async count(key: string, by: number, ttlMs: number, evenWhenFull = false): Promise<number> {
    return (await this.#ask((redis) => runScript(redis, countScript(evenWhenFull), [key], [by, ttlMs]))) as number
  }

  onChange(listener: (key: string | undefined) => void): void {
    this.#listeners.push(listener)
  }

  get reportsBurials(): boolean {
    return this.#link.tracks || this.#burials?.isUp === true
  }

  watchBurials(): void {
    // A server that tracks the keys reports them itself.
    if (this.#link.tracks) return
    this.#burials ??= this.#listen(ENDED_CHANNEL, {
      message: (text) => this.#notify(text.split(' ', 1)[0]),
      up: () => this.#notify(undefined),
    })
  }

  async openIndex(): Promise<SessionIndex> {
    const { redisIndex } = await import('./session-index.ts')
    this.#masters.needIndexes()
    return redisIndex(this.#askUntracked, (key) => this.#masters.skewMs(key))
  }

  async openLedger(name: string, terms: LedgerTerms): Promise<Ledger> {
    const { redisLedger } = await import('./ledger/redis-ledger.ts')
    return redisLedger(name, terms, (command) => this.#ask(command))
  }

  async openRefusals(name: string, onChange: () => void): Promise<SharedDocument> {
    const { openDocument } = await import('./shared-document.ts')
    const names = { key: refusalsKey(name), channel: budgetChannel(name) }
    return openDocument(names, onChange, this.#listen, this.#askUntracked)
  }

  readMarked(key: string, mark: string): Promise<MarkedReading> {
    return readMarked(this.#askUntracked, key, mark)
  }

  async openConfirmed(replicas: number): Promise<ConfirmableWrites> {
    const { ConfirmedWrites } = await import('./confirmed-writes.ts')
    return new ConfirmedWrites(this.#replicas, replicas, {
      errorCode: (code) => this.#noteError(code),
      skewMs: (key) => this.#masters.skewMs(key),
      unconfirmed: () => this.#observer?.failed('unconfirmed'),
    })
  }

  observe(observer: StoreObserver): void {
    this.#observer = observer
  }

  async facts(): Promise<StoreFacts | undefined> {
    return this.#health.downSince === undefined ? this.#facts.read() : undefined
  }

  warnings(): string[] {
    const unconfirmed = this.#replicas.failures.map(
      (reason) => `calls with an Idempotency-Key are refused, since no replicas confirm their records (${reason})`,
    )
    return [...this.#masters.warnings(), ...unconfirmed, ...this.#facts.warnings]
  }

  watchReplication(replicas: number): void {
    this.#facts.watchReplication(replicas)
  }

  unavailableSince(): number | undefined {
    return this.#masters.unavailableSince
  }

  condition(): StoreCondition {
    return this.#masters.condition
  }

  availableForMs(): number {
    return this.#masters.availableForMs
  }

  async isReplicated(key: string): Promise<boolean | undefined> {
    return this.#replicas.have(key)
  }

  async close(): Promise<void> {
    // Before the link closes, so that its end is not mistaken for a loss.
    this.#health.close()
    this.#masters.clock.close()
    this.#facts.close()
    this.#replicas.close()
    void this.#burials?.close()
    await this.#link.close()
  }

  #storedValue(key: string, value: string | null, expiresAt: number): StoredValue | undefined {
    if (value !== null && expiresAt >= 0) return { value, expiresAt: expiresAt - this.#masters.skewMs(key) }
    // This read itself may have made the key expire, and the server does not report that here (NOLOOP).
    this.#notify(key)
    return undefined
  }

  /** Runs a command that may change a key. Notifies the listeners, because the server does not (NOLOOP). */
  async #change<Reply>(key: string, command: (redis: RedisCommands) => Promise<Reply>): Promise<Reply> {
    try {
      return await this.#ask(command)
    } finally {
      this.#notify(key)
    }
  }

  /** Runs commands against a deadline. node-redis has none for a reply. */
  async #ask<Reply>(command: (redis: RedisCommands) => Promise<Reply>): Promise<Reply> {
    if (this.#health.downSince !== undefined) {
      this.#observer?.failed('down')
      throw new StoreUnavailable(new Error('the link to Redis is down or unhealthy'))
    }
    this.#masters.keepTime()
    const askedAt = performance.now()
    try {
      const reply = await beforeDeadline(COMMAND_DEADLINE_MS, command(this.#link.commands()))
      this.#health.noteAlive()
      return reply
    } catch (cause) {
      const code = replyCode(cause)
      if (code === undefined) this.#health.noteFailure()
      else this.#noteError(code)
      // In a Cluster, which does not track, one server may hang while the others serve.
      if (cause instanceof CommandTimeout && this.#link.tracks) this.#health.noteLoss('deadline')
      const failure = cause instanceof CommandTimeout ? 'timeout' : 'lost'
      this.#observer?.failed(code === undefined ? failure : 'refused')
      throw new StoreUnavailable(cause)
    } finally {
      this.#observer?.asked((performance.now() - askedAt) / 1000)
    }
  }

  /** Handles the code of an error reply. MOVED: another master of a Cluster has the key. */
  #noteError(code: string): void {
    const refusal = this.#masters.noteErrorCode(code)
    if (refusal !== undefined) this.#observer?.refusedWrite(refusal)
    if (code === 'MOVED') this.#link.abandon(code)
  }

  #notify(key: string | undefined): void {
    for (const listener of this.#listeners) listener(key)
  }
}
