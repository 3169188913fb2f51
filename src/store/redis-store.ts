import type { Changing } from '../config/changing.ts'
import { methodsOf, runnerOf, type Command } from './command.ts'
import { CONFIRMABLE, DATA } from './data-commands.ts'
import { beforeDeadline, CommandTimeout } from '../time/deadline.ts'
import { vital } from '../time/vital.ts'
import { within } from '../time/within.ts'
import { errorCode, replyCode, type RedisCommands, type RedisLink } from './links/redis-link.ts'
import { ENDED_CHANNEL, budgetKey } from './keys.ts'
import { LinkHealth, type StoreLog } from './servers/link-health.ts'
import { Masters } from './servers/masters.ts'
import type { Ledger, LedgerTerms } from './ledger/ledger.ts'
import { linkTo } from './links/link-to.ts'
import { Replicas } from './links/replicas.ts'
import { ServerFacts } from './servers/server-facts.ts'
import type { SessionIndex } from './session-index.ts'
import { subscribe, type SubscriberEvents } from './links/channel-subscriber.ts'
import type { LastingConnection } from './links/lasting-connection.ts'
import { Unsent } from './links/unsent.ts'
import type { SharedDocument } from './shared-document.ts'
import { LIMITS } from './limit-commands.ts'
import { StoreUnavailable, type ConfirmableWrites, type Store, type StoreCondition } from './store.ts'
import type { StoreFacts, StoreObserver } from '../telemetry/store-observer.ts'

/** Timeout of a command. */
const COMMAND_DEADLINE_MS = 1500

/** {@link RedisStore.staleMs} over a link that does not track keys. */
const UNTRACKED_STALE_MS = 1000

/**
 * The store on Redis. Over a tracking link the server watches the keys that were read here, which feeds
 * {@link onChange}. If a command on such a link times out, the link becomes unhealthy: reports of changes may be missing,
 * so the listeners are notified that any key may have changed, and commands fail at once. Then the link
 * reconnects as soon as it has been silent for too long, unless a reply arrives first.
 */
export class RedisStore extends runnerOf(DATA) implements Store {
  readonly staleMs: number
  readonly limits = methodsOf(LIMITS, this)
  readonly #link: RedisLink
  readonly #listeners: ((key: string | undefined) => void)[] = []
  readonly #connecting: Promise<void>
  readonly #facts: ServerFacts
  readonly #masters: Masters
  readonly #skewMs = (key: string): number => this.#masters.skewMs(key)
  #observer: StoreObserver | undefined
  readonly #health: LinkHealth
  readonly #listen = (channel: string, events: SubscriberEvents) => subscribe(channel, this.#link, events)
  #burials: LastingConnection | undefined
  readonly #replicas: Replicas

  private constructor(link: RedisLink, log: StoreLog) {
    super()
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
    vital(this.#connecting.then(() => this.#masters.warnOfRights()))
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

  override async run<Args extends readonly unknown[], Reply>(
    command: Command<never, Args, Reply>,
    args: Args,
  ): Promise<Reply> {
    const known = command.known?.(...args)
    if (known !== undefined) return known.reply
    try {
      const [first] = args
      const key = typeof first === 'string' ? first : undefined
      const sent = await this.#ask(key, (redis) =>
        command.send(command.isUntracked ? this.#link.untracked() : redis, this.#skewMs, ...args),
      )
      const refusal = command.refusal?.(sent)
      if (refusal) this.#noteError(errorCode(refusal) ?? '', key)
      const reply = command.reply(sent, this.#skewMs, ...args)
      if (reply === undefined && command.tells === 'ifGone') this.#notify(args[0] as string)
      return reply
    } finally {
      if (command.tells === 'always') this.#notify(args[0] as string)
    }
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
    const { INDEX } = await import('./index-commands.ts')
    this.#masters.needIndexes()
    return methodsOf(INDEX, this)
  }

  async openLedger(name: string, terms: LedgerTerms): Promise<Ledger> {
    const { ledgerCommands } = await import('./ledger/ledger-commands.ts')
    return methodsOf(ledgerCommands(name, terms), this)
  }

  async openRefusals(name: string, onChange: () => void): Promise<SharedDocument> {
    const { openDocument } = await import('./shared-document.ts')
    const names = { key: budgetKey('refusals', name), channel: budgetKey('budget-news', name) }
    return openDocument(names, onChange, this.#listen, this)
  }

  async openConfirmed(replicas: number): Promise<ConfirmableWrites> {
    return methodsOf(CONFIRMABLE, { run: (command, args) => this.#confirm(replicas, command, args) })
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
    if (replicas > 0) this.#replicas.expect()
  }

  unavailableSince(): number | undefined {
    return this.#masters.unavailableSince
  }

  condition(): StoreCondition {
    return this.#masters.condition
  }

  availableForMs(key: string): number {
    return this.#masters.availableForMs(key)
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

  /** Runs a command that counts only once so many replicas have what it wrote. */
  async #confirm<Args extends readonly unknown[], Reply>(
    replicas: number,
    command: Command<never, Args, Reply>,
    args: Args,
  ): Promise<Reply> {
    const key = args[0] as string
    const write = (redirection?: string): Promise<unknown> =>
      this.#replicas.write(key, replicas, (redis) => command.send(redis, this.#skewMs, ...args), redirection)
    try {
      const sent = await write()
        .catch((error: Error) => {
          // A claim that is made where the slot may never arrive could be made once more where it is, and its call sent twice.
          const isClaim = (command as unknown) === CONFIRMABLE.create
          if (isClaim || replyCode(error) !== 'ASK') throw error
          return write(error.message)
        })
        .catch(async (error: unknown) => {
          if (replyCode(error) !== 'MOVED') throw error
          // Nothing was written. A command that is sent on finds the master that has the key now.
          await this.#ask(key, (redis) => redis.send(key, ['PEXPIRETIME', key]))
          return write()
        })
      return command.reply(sent, this.#skewMs, ...args)
    } catch (cause) {
      const code = replyCode(reasonFor(cause))
      if (code !== undefined) this.#noteError(code, key)
      this.#observer?.failed('unconfirmed')
      throw new StoreUnavailable(cause)
    }
  }

  /** Runs commands against a deadline. node-redis has none for a reply. @param key theirs, if they have one in common */
  async #ask<Reply>(key: string | undefined, command: (redis: RedisCommands) => Promise<Reply>): Promise<Reply> {
    if (this.#health.downSince !== undefined) {
      this.#observer?.failed('down')
      throw new StoreUnavailable(new Unsent(new Error('the link to Redis is down or unhealthy')))
    }
    this.#masters.keepTime()
    const askedAt = performance.now()
    try {
      const reply = await beforeDeadline(COMMAND_DEADLINE_MS, command(this.#link.commands()))
      this.#health.noteAlive()
      return reply
    } catch (cause) {
      const code = replyCode(reasonFor(cause))
      if (code === undefined) this.#masters.noteFailure(key)
      else this.#noteError(code, key)
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
  #noteError(code: string, key: string | undefined): void {
    const refusal = this.#masters.noteErrorCode(code, key)
    if (refusal !== undefined) this.#observer?.refusedWrite(refusal)
    if (code === 'MOVED') this.#link.abandon(code)
  }

  #notify(key: string | undefined): void {
    for (const listener of this.#listeners) listener(key)
  }
}

/** Why a command has failed, or was not even sent. */
function reasonFor(failure: unknown): unknown {
  return failure instanceof Unsent ? failure.cause : failure
}
