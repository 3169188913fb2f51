import { createClient } from 'redis'
import { StoreUnavailable, type Store, type StoredValue } from './store.ts'

/** No answer may keep a request waiting for longer than this. */
const COMMAND_DEADLINE_MS = 1500
/** A link that has said nothing for so long is in doubt; it is pinged every second. */
const MAX_SILENCE_MS = 2000
const LOOK_EVERY_MS = 250

const REPLACE = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PXAT', ARGV[3])
return 1`

const REMOVE_IF = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])`

const COUNT = `
local count = redis.call('INCR', KEYS[1])
if count == 1 then redis.call('PEXPIREAT', KEYS[1], ARGV[1]) end
return count`

function connect(url: string) {
  return createClient({
    url,
    RESP: 3,
    emitInvalidate: true,
    pingInterval: 1000,
    socket: {
      socketTimeout: 2500,
      connectTimeout: 2000,
      reconnectStrategy: (tries) => Math.min(50 * 2 ** tries, 1000) + Math.random() * 100,
    },
    // Fail at once while the link is down, rather than queue and act on it later.
    disableOfflineQueue: true,
  })
}

/** What the store reports of its link. */
export interface StoreLog {
  warn(details: object, message: string): void
  info(details: object, message: string): void
}

/**
 * The store on one Redis. Reads are tracked by the server (CLIENT TRACKING), which is what feeds {@link onChange}.
 *
 * A link that does not answer in time is in doubt: invalidations may be missing, so everything read before is doubted
 * too, and commands fail at once. Nothing more is written to it then, so its socket times out and is opened anew,
 * unless an answer comes first.
 */
export class RedisStore implements Store {
  readonly #client: ReturnType<typeof connect>
  readonly #listeners: ((key: string | undefined) => void)[] = []
  #downSince: number | undefined = Date.now()
  #connecting: Promise<void> = Promise.resolve()
  #answeredAt = 0
  readonly #log: StoreLog
  readonly #watchdog: NodeJS.Timeout

  private constructor(url: string, log: StoreLog) {
    this.#log = log
    this.#client = connect(url)
    this.#client.on('error', (error: Error & { code?: string }) => this.#doubt(error.code ?? error.name))
    this.#client.on('reconnecting', () => this.#doubt('reconnecting'))
    this.#client.on('end', () => this.#doubt('closed'))
    this.#client.on('ready', () => {
      // Whatever changed while nobody was listening was not heard of.
      this.#tell(undefined)
      this.#answered()
    })
    this.#client.on('ping-interval', () => this.#answered())
    this.#watchdog = setInterval(() => {
      if (Date.now() - this.#answeredAt > MAX_SILENCE_MS) this.#doubt('silence')
    }, LOOK_EVERY_MS)
    this.#watchdog.unref()
    this.#client.on('invalidate', (key: Buffer | string | null) => this.#tell(key?.toString()))
  }

  /** Starts to connect, and goes on trying by itself, now and after every loss. */
  static connect(url: string, log: StoreLog): RedisStore {
    const store = new RedisStore(url, log)
    // It only rejects when closed while still connecting; errors are heard above.
    store.#connecting = store.#client.connect().then(
      () => undefined,
      () => undefined,
    )
    return store
  }

  /** Resolves when first connected, or after `waitMs`. */
  async connected(waitMs: number): Promise<void> {
    await Promise.race([this.#connecting, delay(waitMs)])
  }

  async create(key: string, value: string, expiresAt: number): Promise<boolean> {
    const options = { condition: 'NX', expiration: { type: 'PXAT', value: expiresAt } } as const
    return (await this.#ask(() => this.#client.set(key, value, options))) !== null
  }

  async read(key: string): Promise<StoredValue | undefined> {
    const [value, expiresAt] = await this.#ask(() =>
      Promise.all([this.#client.get(key), this.#client.pExpireTime(key)]),
    )
    return value === null || expiresAt < 0 ? undefined : { value, expiresAt }
  }

  async readMany(keys: readonly string[]): Promise<(string | undefined)[]> {
    // Not MGET: in a cluster the keys live on different nodes.
    const values = await this.#ask(() => Promise.all(keys.map((key) => this.#client.get(key))))
    return values.map((value) => value ?? undefined)
  }

  async replace(key: string, expected: string, value: string, expiresAt: number): Promise<boolean> {
    const call = { keys: [key], arguments: [expected, value, String(expiresAt)] }
    return (await this.#ask(() => this.#client.eval(REPLACE, call))) === 1
  }

  async swap(key: string, value: string): Promise<string | undefined> {
    const options = { condition: 'XX', expiration: 'KEEPTTL', GET: true } as const
    return (await this.#ask(() => this.#client.set(key, value, options))) ?? undefined
  }

  async extend(key: string, expiresAt: number): Promise<void> {
    await this.#ask(() => this.#client.pExpireAt(key, expiresAt, 'GT'))
  }

  async remove(key: string): Promise<boolean> {
    return (await this.#ask(() => this.#client.del(key))) === 1
  }

  async removeIf(key: string, expected: string): Promise<boolean> {
    const call = { keys: [key], arguments: [expected] }
    return (await this.#ask(() => this.#client.eval(REMOVE_IF, call))) === 1
  }

  async count(key: string, expiresAt: number): Promise<number> {
    const call = { keys: [key], arguments: [String(expiresAt)] }
    return Number(await this.#ask(() => this.#client.eval(COUNT, call)))
  }

  onChange(listener: (key: string | undefined) => void): void {
    this.#listeners.push(listener)
  }

  unavailableSince(): number | undefined {
    return this.#downSince
  }

  async close(): Promise<void> {
    clearInterval(this.#watchdog)
    this.#client.removeAllListeners('end')
    if (this.#client.isReady) await this.#client.close().catch(() => undefined)
    else this.#client.destroy()
  }

  /** Runs commands against the deadline; node-redis itself bounds only the time before a command is written. */
  async #ask<Answer>(command: () => Promise<Answer>): Promise<Answer> {
    if (this.#downSince !== undefined) throw new StoreUnavailable(new Error('the link is down or in doubt'))
    let timer: NodeJS.Timeout | undefined
    const deadline = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => {
        this.#doubt('deadline')
        reject(new Error('no answer in time'))
      }, COMMAND_DEADLINE_MS)
    })
    try {
      const answer = await Promise.race([command(), deadline])
      this.#answered()
      return answer
    } catch (cause) {
      throw new StoreUnavailable(cause)
    } finally {
      clearTimeout(timer)
    }
  }

  #answered(): void {
    this.#answeredAt = Date.now()
    if (this.#downSince === undefined) return
    this.#downSince = undefined
    this.#log.info({}, 'the session store is connected')
  }

  #doubt(reason: string): void {
    if (this.#downSince !== undefined) return
    this.#downSince = Date.now()
    this.#log.warn({ reason }, 'the session store does not answer')
    this.#tell(undefined)
  }

  #tell(key: string | undefined): void {
    for (const listener of this.#listeners) listener(key)
  }
}

function delay(ms: number): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, ms).unref())
}
