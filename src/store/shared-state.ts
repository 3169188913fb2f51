import { standstill } from '../time/standstill.ts'
import type { SharedDocument } from './shared-document.ts'

/** The state after an event. It is asked again whenever another instance was faster, so it has no other effect. */
type Change<State> = (state: State, now: number) => State

/** How a state is written, and what two instances that have different ones make of them. */
interface Form<State> {
  readonly nothing: State
  /**
   * Undefined for a text that this instance cannot open or understand. It is read again each time, and replaced only by a change
   * that may do so.
   */
  parse(text: string, now: number): State | undefined
  format(state: State): string
  /** After this time without a change the store forgets the state. */
  readonly ttlMs: number
  /** Whether a change counts here before the store was asked. */
  readonly isAtOnce?: boolean
  /**
   * By the length of a round trip {@link SharedState.now} is behind the store's clock, so that nothing ends too early, or ahead
   * of it, so that nothing lasts too long.
   */
  readonly isAhead?: boolean
  /** Without this, the state in the store counts, and what it has lost is lost. */
  readonly upkeep?: {
    /** @returns `read` itself if the store lacks nothing */
    merge(own: State, read: State, now: number): State
    /** Whether a text is to be written again, although it lacks nothing. */
    isOutdated(version: string): boolean
  }
}

/** The end of an exchange with the store. */
interface Outcome<State> {
  readonly state: State
  /** The store's clock (epoch ms). */
  readonly now: number
  /** Whether the store was asked, and has replied. */
  readonly isRead: boolean
  /** Whether the store has the state. */
  readonly isShared: boolean
  /** The error of the store, if there was one: what has changed then counts here alone. */
  readonly cause?: unknown
}

interface Pending<State> {
  readonly change: Change<State>
  readonly isAsked: boolean
  readonly mayReplace: boolean
  readonly done: (outcome: Outcome<State>) => void
}

/** How often a change is tried if other instances are faster. Each time, one of them has written all that it had to. */
const MAX_TRIES = 20
/** A read that takes longer shows that this process slept during it: the state may be as old as the read's start. */
const MAX_READ_MS = 2000
const CLOCK = { now: () => performance.now(), timeOfDay: () => Date.now() }

/**
 * A state that the instances of a store share: a document in the store, and a copy in each process. All changes that are waiting
 * are made together, to what the store has at that moment. While the store is away, each process goes on with its copy.
 */
export class SharedState<State> {
  readonly #form: Form<State>
  readonly #onNews: () => void
  readonly #clock: Pick<typeof CLOCK, 'now'>
  #document: SharedDocument | undefined
  /** The content of the store, as far as this process knows, and the changes that the store may not have. */
  #known: State
  /** The same with the changes that are waiting. */
  #current: State
  #version: string | undefined
  #isReadable = true
  /** Whether what is known may be written over a text that cannot be opened. */
  #mayReplace = false
  /** The store may not have all that this instance has, or not on its replicas. */
  #isUnconfirmed = false
  #aheadMs: number
  #knownAt = -Infinity
  #standstills = standstill.count
  #pending: Pending<State>[] = []
  #working: Promise<void> | undefined

  /** @param onNews called after each exchange with the store, and each change */
  constructor(form: Form<State>, onNews: () => void, document?: SharedDocument, clock = CLOCK) {
    this.#form = form
    this.#onNews = onNews
    this.#document = document
    this.#clock = clock
    this.#known = this.#current = form.nothing
    this.#aheadMs = clock.timeOfDay() - clock.now()
  }

  get current(): State {
    return this.#form.isAtOnce ? this.#current : this.#known
  }

  /** The store's clock, as far as this process knows it (epoch ms). */
  get now(): number {
    return Math.floor(this.#clock.now() + this.#aheadMs)
  }

  /** Names what the store had last; empty if it had nothing, undefined if it was never read. */
  get version(): string | undefined {
    return this.#version
  }

  /** Whether what the store had last could be opened and understood. */
  get isReadable(): boolean {
    return this.#isReadable
  }

  /** The time up to which this instance surely knows every change of the others (ms of the clock of {@link standstill}). */
  get knownAt(): number {
    return standstill.count === this.#standstills ? this.#knownAt : -Infinity
  }

  /** Shares the state through a document. Without one, this process is alone. */
  share(document: SharedDocument | undefined): void {
    this.#document = document
    this.reread()
  }

  /** Another instance has changed the document, or may have. */
  reread(): void {
    if (this.#document !== undefined) void this.read()
  }

  /**
   * Reads the state. Callers that ask before the read begins share it. Never rejects.
   * @param isAsked whether somebody waits for it: what they do next may rely on it, however long it took
   */
  read(isAsked = false): Promise<Outcome<State>> {
    return this.#add((state) => state, { isAsked, mayReplace: false })
  }

  /**
   * Makes a change, which counts here even if the store is away. Never rejects.
   * @param mayReplace whether the store may get it although what it has cannot be opened, and is lost then
   */
  change(change: Change<State>, mayReplace = false): Promise<Outcome<State>> {
    const changed = this.#add(change, { isAsked: false, mayReplace })
    if (this.#form.isAtOnce) {
      this.#current = change(this.#current, this.now)
      this.#onNews()
    }
    return changed
  }

  /**
   * From now on nothing is heard of other instances. Who still asks, such as an order under way, is answered as before. Resolves
   * once the exchange that is under way has ended. Never rejects.
   */
  async close(): Promise<void> {
    this.#document?.close()
    await this.#working
  }

  #add(
    change: Change<State>,
    { isAsked, mayReplace }: Pick<Pending<State>, 'isAsked' | 'mayReplace'>,
  ): Promise<Outcome<State>> {
    const { promise, resolve } = Promise.withResolvers<Outcome<State>>()
    this.#pending.push({ change, isAsked, mayReplace, done: resolve })
    this.#working ??= this.#work()
    return promise
  }

  /** One exchange after the other: a change must not be based on what another exchange is about to replace. */
  async #work(): Promise<void> {
    // A change that counts at once is also told at once. All others that ask at the same moment share a read.
    if (!this.#form.isAtOnce) await Promise.resolve()
    while (this.#pending.length > 0) {
      const batch = this.#pending
      this.#pending = []
      // A change that throws is a fault of this program: whoever waits hears of it, and the next exchange comes.
      const outcome = await this.#exchange(batch).catch((cause: unknown) => {
        return { state: this.#known, now: this.now, isRead: false, isShared: false, cause }
      })
      for (const { done } of batch) done(outcome)
    }
    this.#working = undefined
  }

  async #exchange(batch: readonly Pending<State>[]): Promise<Outcome<State>> {
    const document = this.#document
    const isAsked = batch.some((each) => each.isAsked)
    let [isRead, isShared, now, cause]: [boolean, boolean, number, unknown] = [false, false, this.now, undefined]
    try {
      for (let tries = 0; tries < MAX_TRIES && !isShared; tries++) {
        isRead = false
        if (document === undefined) break
        now = await this.#read(document, isAsked)
        isRead = true
        const isChanged = this.#make(batch, now)
        if (!this.#isReadable && !this.#mayReplace) break
        isShared = (!isChanged && !this.#mustWrite()) || (await this.#write(document))
      }
    } catch (error) {
      cause = error
    }
    if (!isRead) this.#make(batch, (now = this.now))
    return { state: this.#known, now, isRead, isShared, cause }
  }

  /** @returns the store's clock */
  async #read(document: SharedDocument, isAsked: boolean): Promise<number> {
    const [standstills, askedAt, sentAt] = [standstill.count, standstill.now(), this.#clock.now()]
    let isRead = false
    try {
      const { version, text, now } = await document.read(this.#isReadable ? this.#version : undefined)
      this.#aheadMs = now - (this.#form.isAhead ? sentAt : this.#clock.now())
      if (text !== undefined) this.#take(text, now)
      this.#version = version
      isRead = true
      return now
    } finally {
      const tookMs = standstill.now() - askedAt
      const mayBeOld = isRead && (!isAsked || tookMs > MAX_READ_MS)
      this.#knownAt = mayBeOld ? askedAt : askedAt + tookMs
      // Without the store, a standstill is over only if somebody has asked: otherwise the first who asks once the store is back
      // must still hear of a change.
      if (isRead || isAsked) this.#standstills = standstills
    }
  }

  #take(text: string, now: number): void {
    const { nothing, upkeep } = this.#form
    const read = text === '' ? nothing : this.#form.parse(text, now)
    this.#isReadable = read !== undefined
    if (read === undefined) return
    this.#known = upkeep === undefined ? read : upkeep.merge(this.#known, read, now)
    if (this.#known !== read) this.#isUnconfirmed = true
  }

  /** Makes changes to what is known. @returns whether there is anything to write */
  #make(batch: readonly Pending<State>[], now: number): boolean {
    const before = this.#known
    this.#mayReplace = false
    for (const { change, mayReplace } of batch) {
      const last = this.#known
      this.#known = change(last, now)
      this.#mayReplace ||= mayReplace && this.#known !== last
    }
    if (this.#known !== before) this.#isUnconfirmed = true
    if (this.#form.isAtOnce) {
      this.#current = this.#pending.reduce((state, { change }) => change(state, this.now), this.#known)
    }
    this.#onNews()
    return this.#known !== before
  }

  /** Whether the store lacks what this instance knows, or has it in an outdated form. */
  #mustWrite(): boolean {
    const { upkeep } = this.#form
    const version = this.#version ?? ''
    return upkeep !== undefined && (version === '' || this.#isUnconfirmed || upkeep.isOutdated(version))
  }

  /** Returns false if another instance was faster. @throws StoreUnavailable */
  async #write(document: SharedDocument): Promise<boolean> {
    const written = await document.write(this.#version ?? '', this.#form.format(this.#known), this.#form.ttlMs)
    if (written === undefined) return false
    this.#version = written
    this.#isReadable = true
    this.#isUnconfirmed = false
    return true
  }
}
