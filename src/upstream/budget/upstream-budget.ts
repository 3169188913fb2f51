import { retryAfterMs } from '../../http/retry-after.ts'
import { BUDGET_CLASSES, type BudgetClass, type BudgetConfig } from '../../config/upstream-budget.ts'
import { RENEW_PART, type Ledger, type LedgerTerms } from '../../store/ledger/ledger.ts'
import type { Store } from '../../store/store.ts'
import type { Admission, Budget } from './admission.ts'
import { AlonePart } from './alone.ts'
import { newCounts } from './budget-counts.ts'
import { PROCESS_CLOCK, type Clock } from './clock.ts'
import { Demand } from './demand.ts'
import type { Portion } from './fair-share.ts'
import { Gate } from './gate.ts'
import { Leaseholder, type Settled } from './leaseholder.ts'
import type { Token } from './lease.ts'
import { Shares } from './shares.ts'
import { spreadMs } from './spread.ts'
import { advanceMs, aloneWindows, ledgerTerms, readyOrders, refreshMs } from './terms.ts'
import { TokenReservation } from './token-reservation.ts'
import { wantedTokens, type Demands } from './wanted-tokens.ts'

/** For how long a class is held back when upstream's 429 does not say, at least, and at most. */
const HOLD_BACK_MS = 10_000
const MIN_HOLD_BACK_MS = 1000
const MAX_HOLD_BACK_MS = 3_600_000
/** While the ledger cannot be reached, it is tried again after this time. */
const RETRY_MS = 500
/** How often a process looks whether its lease has ended early, since the time of day has jumped. */
const WATCH_MS = 1000
/** What a caller is told to wait when nothing better is known. */
const SOON_MS = 1000
/** For how many leases a start waits for tokens. A new ledger is quiet for one, but Redis may be away before, or fail again. */
const OPENING_LEASES = 3

/** The part of this process in the budget of all instances. It keeps tokens at hand, so that most calls wait for nothing. */
export class UpstreamBudget implements Budget {
  readonly counts = newCounts()
  readonly #clock: Clock
  readonly #terms: LedgerTerms
  readonly #ledger: Ledger
  readonly #holder: Leaseholder
  readonly #alone: AlonePart
  readonly #demand: Demands
  readonly #shares: Shares
  readonly #gates: Readonly<Record<BudgetClass, Gate>>
  readonly #ready: number
  /** For each window the calls that counted when the ledger replied last. */
  #used: readonly number[]
  /** Until then the ledger grants nothing, because it may have forgotten something. */
  #quietUntil = -Infinity
  #isSettling = false
  /** Whether the ledger replied to the last report; undefined before the first. */
  #hasReplied: boolean | undefined
  /** The ledger is not asked again until then, because it could not be reached. */
  #awayUntil = -Infinity
  #cancelTimer: () => void = () => undefined
  #isClosed = false
  /** When the ledger replied last, and after which time what it said then is old. */
  #repliedAt = -Infinity
  readonly #refreshMs: number

  /** @param clock another clock, for simulations */
  constructor(config: BudgetConfig, terms: LedgerTerms, ledger: Ledger, clock: Clock = PROCESS_CLOCK) {
    this.#clock = clock
    this.#terms = terms
    this.#ledger = ledger
    this.#holder = new Leaseholder(ledger, clock, terms)
    this.#alone = new AlonePart(clock, aloneWindows(config), terms.marginMs)
    const demand = (): Demand => new Demand(clock, advanceMs(terms))
    this.#demand = { equal: demand(), more: demand() }
    this.#shares = new Shares(clock, terms, config.instances, {
      free: (each) => this.#holder.lease.free(each) + (this.#hasOnlyPart ? this.#alone.free(each) : 0),
      used: () => (this.#hasOnlyPart ? undefined : this.#used),
      expected: (ms, each) => this.#demand.equal.within(ms, each),
    })
    const gate = (): Gate => new Gate(clock)
    this.#gates = { orders: gate(), otps: gate(), reads: gate() }
    this.#used = terms.windows.map(() => 0)
    this.#ready = readyOrders(terms)
    this.#refreshMs = refreshMs(terms, config.instances)
  }

  /** Opens the budget of a store, and asks for the first tokens. */
  static async open(config: BudgetConfig, store: Store): Promise<UpstreamBudget> {
    const terms = ledgerTerms(config)
    const ledger = await store.openLedger(config.name, terms, {
      heldBack: (budgetClass, ms) => budget.#holdBack(budgetClass, ms),
      newsMissed: () => void budget.#settle(),
    })
    const budget = new UpstreamBudget(config, terms, ledger)
    return budget
  }

  /**
   * Resolves once there are tokens for orders, or after three leases without any. A new ledger grants nothing at first. While
   * upstream refuses orders it resolves at once, since that may take an hour.
   * @param signal ends the wait
   */
  async opened(signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return
    const { promise, resolve } = Promise.withResolvers<void>()
    signal?.addEventListener('abort', () => resolve(), { once: true })
    const giveUp = this.#clock.after(this.#terms.leaseMs * OPENING_LEASES, resolve)
    let wait: (() => void) | undefined
    const attempt = async (): Promise<void> => {
      await this.#settle()
      if (this.#holder.lease.free('orders') > 0 || this.#gates.orders.isHeldBack || this.#isClosed) return resolve()
      const until = Math.max(this.#awayUntil, this.#gates.orders.emptyUntil)
      wait = this.#clock.after(Math.max(10, until - this.#clock.now()), () => void attempt())
    }
    void attempt()
    await promise
    giveUp()
    wait?.()
  }

  admit(budgetClass: BudgetClass, subject: string): Admission | Promise<Admission> {
    this.#shares.noteAsked(budgetClass, subject)
    const portion = this.#shares.portion(budgetClass, subject)
    if (portion !== 'none') this.#demand[portion].note(budgetClass)
    const { line, isHeldBack, isEmpty } = this.#gates[budgetClass]
    if (isHeldBack) return this.#refuse(budgetClass)
    if (line.length === 0 && portion !== 'none') {
      const token = this.#take(budgetClass, subject)
      if (token !== undefined) {
        if (budgetClass === 'orders') this.#keepReady()
        return this.#grant(budgetClass, token)
      }
    }
    // What others no longer use may be for one who has had a share.
    const mayHaveMore = portion !== 'none' || this.#clock.now() >= this.#repliedAt + this.#refreshMs
    if (isEmpty || this.#isAway || !mayHaveMore || !line.hasRoomFor(subject) || this.#isClosed)
      return this.#refuse(budgetClass)
    const turn = line.wait(subject)
    void this.#settle()
    return turn.then((token) => (token === undefined ? this.#refuse(budgetClass) : this.#grant(budgetClass, token)))
  }

  spread(count: number): number {
    // The ledger does not count by class, so the calls of this process have to stand for those of all.
    const part = this.#demand.equal.partOtherThan('otps')
    const others = this.#used.map((used) => used * part)
    return spreadMs(count, this.#terms.windows, others)
  }

  /** For each window the calls that are left for orders: undefined while the ledger, which alone knows them, is away. */
  left(): { readonly windowMs: number; readonly calls: number | undefined; readonly limit: number }[] {
    return this.#terms.windows.map(({ windowMs, ceilings }, at) => {
      const limit = ceilings.orders
      const calls = Math.max(0, limit - (this.#used[at] ?? 0))
      return { windowMs, limit, calls: this.#hasReplied === true ? calls : undefined }
    })
  }

  /** The tokens of a class that this process has leased and not used yet. */
  leased(budgetClass: BudgetClass): number {
    return this.#holder.lease.free(budgetClass)
  }

  /** Whether upstream refuses a class at present. */
  isHeldBack(budgetClass: BudgetClass): boolean {
    return this.#gates[budgetClass].isHeldBack
  }

  /** Whether the ledger cannot be reached at present. An attempt that is under way has not reached it yet. */
  get isAlone(): boolean {
    return this.#hasReplied === false
  }

  /** Returns what was not spent. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#cancelTimer()
    for (const each of BUDGET_CLASSES) this.#gates[each].dismiss()
    if (!this.#isAway) await this.#holder.leave()
    this.#ledger.close()
  }

  get #isAway(): boolean {
    return this.#awayUntil > this.#clock.now()
  }

  /** Whether the ledger cannot be reached, or grants nothing because it may have forgotten something. */
  get #hasOnlyPart(): boolean {
    return this.#isAway || this.#quietUntil > this.#clock.now()
  }

  #take(budgetClass: BudgetClass, subject: string): Token | undefined {
    const token = this.#holder.lease.take(budgetClass) ?? this.#takeAlone(budgetClass)
    if (token !== undefined) this.#shares.noteTaken(budgetClass, subject)
    return token
  }

  #takeAlone(budgetClass: BudgetClass): Token | undefined {
    const token = this.#hasOnlyPart ? this.#alone.take(budgetClass) : undefined
    if (token !== undefined) this.counts.alone++
    return token
  }

  #grant(budgetClass: BudgetClass, token: Token): Admission {
    this.counts.granted[budgetClass]++
    const reservation = new TokenReservation(token, {
      another: () => this.#holder.lease.take(budgetClass),
      isHeldBack: () => this.isHeldBack(budgetClass),
      refuse: () => {
        this.counts.refused[budgetClass]++
        return this.#waitMs(budgetClass)
      },
      refused: (retryAfter) => this.#noteRefusal(budgetClass, retryAfter),
    })
    return { is: 'granted', reservation }
  }

  #refuse(budgetClass: BudgetClass): Admission {
    this.counts.refused[budgetClass]++
    return { is: 'refused', retryAfterMs: this.#waitMs(budgetClass) }
  }

  #waitMs(budgetClass: BudgetClass): number {
    return Math.max(SOON_MS, Math.ceil(this.#gates[budgetClass].waitMs))
  }

  #keepReady(): void {
    if (this.#holder.lease.free('orders') * 2 > this.#ready) return
    if (!this.#isAway && !this.#gates.orders.isEmpty) void this.#settle()
  }

  /** Reports to the ledger, and serves those who wait. One report at a time. */
  async #settle(): Promise<void> {
    if (this.#isSettling || this.#isClosed) return
    this.#isSettling = true
    const wanted = wantedTokens(this.#gates, this.#demand, this.#shares, this.#ready)
    const settlement = await this.#holder.settle(wanted)
    this.#isSettling = false
    this.#hasReplied = settlement.is === 'settled'
    const now = this.#clock.now()
    if (settlement.is === 'away') this.#awayUntil = now + RETRY_MS
    else {
      this.#awayUntil = -Infinity
      this.#quietUntil = now + settlement.quietMs
      this.#used = settlement.used
      this.#repliedAt = now
      for (const each of BUDGET_CLASSES) this.#note(each, settlement)
    }
    for (const each of BUDGET_CLASSES) this.#serve(each)
    this.#schedule()
  }

  #note(budgetClass: BudgetClass, { waitMs, heldBackMs }: Settled): void {
    const gate = this.#gates[budgetClass]
    gate.noteReply(waitMs[budgetClass])
    if (heldBackMs[budgetClass] > 0) this.#holdBack(budgetClass, heldBackMs[budgetClass])
  }

  #serve(budgetClass: BudgetClass): void {
    const gate = this.#gates[budgetClass]
    const portion = (subject: string): Portion => this.#shares.portion(budgetClass, subject)
    for (const each of ['equal', 'more']) {
      gate.line.serve((subject) => (portion(subject) === each ? this.#take(budgetClass, subject) : undefined))
    }
    gate.line.dismiss((subject) => portion(subject) === 'none')
    if (gate.line.length === 0) return
    // Those who came after the report was sent may still get something.
    if (!gate.isEmpty && !this.#isAway) void this.#settle()
    else gate.dismiss()
  }

  /** Plans the next report: long before the lease ends, or when orders may have tokens again. */
  #schedule(): void {
    this.#cancelTimer()
    if (this.#isClosed) return
    const now = this.#clock.now()
    const { emptyUntil } = this.#gates.orders
    const isShort = this.#holder.lease.free('orders') < this.#ready && emptyUntil > now
    const renewMs = this.#terms.leaseMs * RENEW_PART
    this.#sleepUntil(now + (this.#isAway ? RETRY_MS : isShort ? Math.min(renewMs, emptyUntil - now) : renewMs))
  }

  #sleepUntil(due: number): void {
    // Node.js warns of a negative time, which a late timer would leave here.
    const leftMs = Math.max(0, due - this.#clock.now())
    this.#cancelTimer = this.#clock.after(Math.min(leftMs, WATCH_MS), () => {
      if (leftMs <= WATCH_MS || this.#holder.lease.isOver) void this.#settle()
      else this.#sleepUntil(due)
    })
  }

  #noteRefusal(budgetClass: BudgetClass, header: string | undefined): void {
    const ms = Math.min(Math.max(retryAfterMs(header) ?? HOLD_BACK_MS, MIN_HOLD_BACK_MS), MAX_HOLD_BACK_MS)
    // Calls that were on their way get the same refusal.
    const isNews = this.#clock.now() + ms - SOON_MS > this.#gates[budgetClass].heldBackUntil
    this.#holdBack(budgetClass, ms)
    // While the ledger is away, the other instances find out by themselves.
    if (isNews) this.#ledger.holdBack(budgetClass, Math.ceil(ms)).catch(() => undefined)
  }

  #holdBack(budgetClass: BudgetClass, ms: number): void {
    this.#holder.lease.drop(budgetClass)
    this.#gates[budgetClass].holdBack(ms)
  }
}
