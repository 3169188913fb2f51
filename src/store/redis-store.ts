import { meansOutOfDescriptors, NO_DESCRIPTOR } from '../telemetry/descriptors.ts'
import { ClusterLink } from './cluster-link.ts'
import { Deadline, LATE_MS, CommandTimeout } from './deadline.ts'
import { MasterLink } from './master-link.ts'
import { parseRedisUrl } from '../config/redis-address.ts'
import { delay, replyCode, type RedisCommands, type RedisLink } from './redis-link.ts'
import { ServerFacts } from './server-facts.ts'
import { BURY, EXTEND, LOCK, READ, REMOVE_IF, REPLACE } from './redis-scripts.ts'
import { Sentinels } from './sentinels.ts'
import { StoreUnavailable, type Store, type StoredValue, type Tombstone } from './store.ts'
import type { StoreFacts, StoreFailure, StoreObserver } from '../telemetry/store-observer.ts'
import { WriteRefusals } from './write-refusals.ts'

/** No answer may keep a request waiting for longer than this. */
const COMMAND_DEADLINE_MS = 1500
/** A link that has said nothing for so long is in doubt; it is pinged every second. */
const MAX_SILENCE_MS = 2000
/** After so long it is given up. */
const LOST_MS = 2500
const LOOK_EVERY_MS = 250

/** What a server answers that is a replica, or has only just begun. */
const NO_MASTER = /^(READONLY|MASTERDOWN|LOADING)\b/

type ExtendReply = [value: string | null, expiresAt: number, refusal: string | null]

/** What the store reports of its link. */
export interface StoreLog {
  error(details: object, message: string): void
  warn(details: object, message: string): void
  info(details: object, message: string): void
}

/** How long a value may be relied on that was read over a link which does not tell of changes. */
const UNTRACKED_STALE_MS = 1000

/**
 * The store on Redis. Over a link that tracks, what was read here is watched by the server, which feeds
 * {@link onChange}; such a link that does not answer in time is in doubt: changes may be missing, so everything read
 * before is doubted too, and commands fail at once. Nothing more is written to it then, so its socket times out and
 * is opened anew, unless an answer comes first.
 */
export class RedisStore implements Store {
  readonly staleMs: number
  readonly #link: RedisLink
  readonly #listeners: ((key: string | undefined) => void)[] = []
  readonly #connecting: Promise<void>
  readonly #log: StoreLog
  readonly #facts: ServerFacts
  readonly #refusals: WriteRefusals
  readonly #observers: StoreObserver[] = []
  readonly #watchdog: NodeJS.Timeout
  #downSince: number | undefined = Date.now()
  #reason: string | undefined
  #aliveAt = 0
  #lookedAt = performance.now()
  #isClosed = false

  private constructor(link: RedisLink, log: StoreLog) {
    this.#log = log
    this.#link = link
    this.#facts = new ServerFacts(link)
    this.#refusals = new WriteRefusals(log)
    this.staleMs = link.tracks ? Infinity : UNTRACKED_STALE_MS
    this.#watchdog = setInterval(() => this.#look(), LOOK_EVERY_MS)
    this.#watchdog.unref()
    this.#connecting = link.open({
      up: () => {
        this.#alive()
        // Whatever changed while nobody was listening was not heard of.
        this.#notify(undefined)
      },
      alive: () => this.#alive(),
      lost: (reason) => this.#markUnhealthy(reason),
      changed: (key) => this.#notify(key),
    })
  }

  /**
   * Starts to connect, and goes on trying by itself, now and after every loss.
   * @throws TypeError when it is no address; the settings are checked for that
   */
  static connect(url: string, log: StoreLog): RedisStore {
    return new RedisStore(linkTo(url), log)
  }

  /** Resolves when first connected, or after `waitMs`. */
  async connected(waitMs: number): Promise<void> {
    await Promise.race([this.#connecting, delay(waitMs)])
  }

  async create(key: string, value: string, expiresAt: number): Promise<boolean> {
    const options = { condition: 'NX', expiration: { type: 'PXAT', value: expiresAt } } as const
    const made = await this.#ask((redis) => redis.set(key, value, options))
    if (made === null) return false
    this.#tookWrite()
    return true
  }

  async lock(key: string, owner: string, expiresAt: number): Promise<boolean> {
    const call = { keys: [key], arguments: [owner, String(expiresAt)] }
    return (await this.#ask((redis) => redis.eval(LOCK, call))) === 1
  }

  async read(key: string): Promise<StoredValue | undefined> {
    const [value, expiresAt] = await this.#ask((redis) =>
      Promise.all([redis.get(key), redis.pExpireTime(key)]),
    )
    return this.#found(key, value, expiresAt)
  }

  async readUntracked(key: string): Promise<StoredValue | undefined> {
    const answer = await this.#ask(() => this.#link.untracked().eval(READ, { keys: [key] }))
    const [value, expiresAt] = answer as [value: string | null, expiresAt: number]
    return this.#found(key, value, expiresAt)
  }

  async readMany(keys: readonly string[]): Promise<(string | undefined)[]> {
    if (keys.length === 0) return []
    const values = await this.#ask(() => this.#link.readMany(keys))
    return values.map((value) => value ?? undefined)
  }

  async replace(key: string, expected: string, value: string, expiresAt: number): Promise<boolean> {
    const call = { keys: [key], arguments: [expected, value, String(expiresAt)] }
    return (await this.#change(key, (redis) => redis.eval(REPLACE, call))) === 1
  }

  async extend(key: string, expiresAt: number): Promise<StoredValue | undefined> {
    const call = { keys: [key], arguments: [String(expiresAt)] }
    const answer = (await this.#ask((redis) => redis.eval(EXTEND, call))) as ExtendReply
    const [value, until, refusal] = answer
    if (refusal !== null) this.#refused(refusal)
    return this.#found(key, value, until)
  }

  async remove(key: string): Promise<boolean> {
    return (await this.#change(key, (redis) => redis.del(key))) === 1
  }

  async removeIf(key: string, expected: string): Promise<boolean> {
    const call = { keys: [key], arguments: [expected] }
    return (await this.#change(key, (redis) => redis.eval(REMOVE_IF, call))) === 1
  }

  async bury(key: string, { key: at, value, expiresAt }: Tombstone): Promise<string | undefined> {
    const call = { keys: [key, at], arguments: [value, String(expiresAt)] }
    // The script reads, and what it reads must not be watched: a stranger may have named the key.
    const held = await this.#change(key, () => this.#link.untracked().eval(BURY, call))
    return (held as string | null) ?? undefined
  }

  async count(key: string, by: number, expiresAt: number): Promise<number> {
    // Not a script: whether this one made the counter is for NX to know.
    const [count] = await this.#ask((redis) =>
      Promise.all([redis.incrBy(key, by), redis.pExpireAt(key, expiresAt, 'NX')]),
    )
    this.#tookWrite()
    return count
  }

  onChange(listener: (key: string | undefined) => void): void {
    this.#listeners.push(listener)
  }

  observe(observer: StoreObserver): void {
    this.#observers.push(observer)
  }

  async facts(): Promise<StoreFacts | undefined> {
    return this.#downSince === undefined ? this.#facts.read() : undefined
  }

  refusesWrites(): string | undefined {
    return this.#refusals.warning
  }

  unavailableSince(): number | undefined {
    return this.#downSince
  }

  async isReplicated(key: string): Promise<boolean | undefined> {
    return this.#link.isReplicated(key).catch(() => false)
  }

  async close(): Promise<void> {
    clearInterval(this.#watchdog)
    // First, so that the link's end is not taken for a loss.
    this.#isClosed = true
    this.#downSince ??= Date.now()
    await this.#link.close()
  }

  #found(key: string, value: string | null, expiresAt: number): StoredValue | undefined {
    if (value !== null && expiresAt >= 0) return { value, expiresAt }
    // It may be this very reading that made it expire: who caused a change is not told of it (NOLOOP).
    this.#notify(key)
    return undefined
  }

  /** Runs a command that may change a key: nobody else tells of what is written here (NOLOOP). */
  async #change<Reply>(key: string, command: (redis: RedisCommands) => Promise<Reply>): Promise<Reply> {
    try {
      return await this.#ask(command)
    } finally {
      this.#notify(key)
    }
  }

  /** Runs commands against the deadline; node-redis itself bounds only the time before a command is written. */
  async #ask<Reply>(command: (redis: RedisCommands) => Promise<Reply>): Promise<Reply> {
    if (this.#downSince !== undefined) {
      this.#failed('down')
      throw new StoreUnavailable(new Error('the link is down or in doubt'))
    }
    const deadline = new Deadline(COMMAND_DEADLINE_MS)
    const askedAt = performance.now()
    try {
      const answer = await Promise.race([command(this.#link.commands()), deadline.passed])
      this.#alive()
      return answer
    } catch (cause) {
      const code = replyCode(cause)
      if (code !== undefined) this.#refused(code)
      // Of several servers one may hang while the others serve.
      if (cause instanceof CommandTimeout && this.#link.tracks) this.#markUnhealthy('deadline')
      this.#failed(failureOf(cause, code))
      throw new StoreUnavailable(cause)
    } finally {
      deadline.clear()
      const seconds = (performance.now() - askedAt) / 1000
      for (const observer of this.#observers) observer.asked(seconds)
    }
  }

  #tookWrite(): void {
    // Of several servers another may still be full.
    if (this.#link.tracks) this.#refusals.tookWrite()
  }

  #failed(failure: StoreFailure): void {
    for (const observer of this.#observers) observer.failed(failure)
  }

  #look(): void {
    const now = performance.now()
    const lateMs = now - this.#lookedAt - LOOK_EVERY_MS
    this.#lookedAt = now
    // While this process was held up it has neither asked nor listened.
    if (lateMs > LATE_MS) this.#aliveAt = Math.min(now, this.#aliveAt + lateMs)
    const silentMs = now - this.#aliveAt
    if (this.#downSince === undefined && silentMs > MAX_SILENCE_MS) this.#markUnhealthy('silence')
    if (silentMs > LOST_MS) this.#link.abandon('silence')
  }

  #refused(refusal: string): void {
    const write = this.#refusals.noteRefusal(refusal)
    if (write !== undefined) for (const observer of this.#observers) observer.refusedWrite(write)
    const reason = NO_MASTER.exec(refusal)
    if (reason !== null) this.#link.abandon(reason[0])
  }

  #alive(): void {
    this.#aliveAt = performance.now()
    if (this.#downSince === undefined || this.#isClosed) return
    this.#downSince = undefined
    this.#reason = undefined
    this.#log.info({}, 'the session store is connected')
  }

  #markUnhealthy(reason: string): void {
    if (this.#isClosed) return
    const isNew = this.#downSince === undefined
    this.#downSince ??= Date.now()
    // What keeps it from coming back may be another thing than what took it away.
    if (isNew || reason !== this.#reason) {
      if (meansOutOfDescriptors(reason)) this.#log.error({ reason }, NO_DESCRIPTOR)
      else this.#log.warn({ reason }, 'the session store does not answer')
    }
    this.#reason = reason
    if (isNew) this.#notify(undefined)
  }

  #notify(key: string | undefined): void {
    for (const listener of this.#listeners) listener(key)
  }
}

function failureOf(cause: unknown, refusal: string | undefined): StoreFailure {
  if (refusal !== undefined) return 'refused'
  return cause instanceof CommandTimeout ? 'timeout' : 'lost'
}

function linkTo(url: string): RedisLink {
  const address = parseRedisUrl(url)
  switch (address?.is) {
    case undefined:
      throw new TypeError('no address of a Redis')
    case 'single': {
      const place = { name: 'the only one', options: { url: address.url } }
      return new MasterLink({ find: async () => place })
    }
    case 'sentinel':
      return new MasterLink(new Sentinels(address))
    case 'cluster':
      return new ClusterLink(address)
  }
}
