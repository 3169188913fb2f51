import {
  BUDGET_CLASSES,
  byClass,
  type BudgetClass,
  type BudgetConfig,
  type ByClass,
} from '../../config/upstream-budget.ts'
import { LEDGER, type Ledger } from '../../store/ledger/ledger.ts'
import type { Store } from '../../store/store.ts'
import type { Admission, Budget, Refused } from './admission.ts'
import { PROCESS_CLOCK, type Clock } from './clock.ts'
import { BudgetCall, type TokenSource } from './budget-call.ts'
import { Demand } from './demand.ts'
import type { Portion } from './subject-calls.ts'
import { Leaseholder } from './leaseholder.ts'
import type { Token } from './lease.ts'
import { Shares } from './shares.ts'
import { budgetTerms, spreadMs, type BudgetTerms } from './terms.ts'
import { WaitingLine } from './waiting-line.ts'
import { UpstreamRefusals, type Hold } from './upstream-refusals.ts'

/** How often a process looks whether its lease has ended early, since the time of day has jumped. */
const WATCH_MS = 1000
/** The time that a caller is told to wait when no better one is known. */
const SOON_MS = 1000
/** A start waits for tokens for this many leases. A new ledger is quiet for one, but Redis may be away before, or fail again. */
const OPENING_LEASES = 3

/** The part of this process in the budget of all instances. It keeps tokens at hand, so that most calls wait for nothing. */
export class UpstreamBudget implements Budget {
  /** For the metrics. `limited`: refused because upstream limits the user of the call; `alone`: granted without Redis. */
  readonly counts = { granted: byClass(() => 0), refused: byClass(() => 0), limited: byClass(() => 0), alone: 0 }
  readonly #clock: Clock
  readonly #terms: BudgetTerms
  readonly #holder: Leaseholder
  readonly #refusals: UpstreamRefusals
  readonly #demand: Demand
  readonly #shares: Shares
  readonly #lines: Readonly<Record<BudgetClass, WaitingLine>>
  readonly #sources: Readonly<Record<BudgetClass, TokenSource>>
  #isSettling = false
  #cancelTimer: () => void = () => undefined
  #isClosed = false

  /**
   * @param clock another clock, for simulations
   * @param refusals what upstream's own 429s mean; the default knows only the 429s of this process
   */
  constructor(
    terms: BudgetTerms,
    ledger: Ledger,
    clock: Clock = PROCESS_CLOCK,
    refusals: UpstreamRefusals = new UpstreamRefusals(clock, (user) => user),
  ) {
    this.#clock = clock
    this.#terms = terms
    this.#refusals = refusals
    this.#holder = new Leaseholder(ledger, clock, terms)
    this.#demand = new Demand(clock, terms)
    this.#shares = new Shares(clock, terms, this.#holder)
    this.#lines = byClass(() => new WaitingLine(clock))
    this.#sources = byClass((each) => ({
      another: () => this.#holder.lease.take(each),
      refuse: (hold) => this.#refuse(each, hold),
    }))
  }

  /** Opens the budget of a store. @param name see {@link UpstreamRefusals} */
  static async open(
    config: BudgetConfig,
    store: Pick<Store, 'openLedger' | 'openRefusals'>,
    name: (user: string) => string,
  ): Promise<UpstreamBudget> {
    const terms = budgetTerms(config)
    const ledger = await store.openLedger(config.name, terms)
    const refusals = new UpstreamRefusals(PROCESS_CLOCK, name)
    const { suspicions } = refusals
    suspicions.share(await store.openRefusals(config.name, () => suspicions.reread()))
    return new UpstreamBudget(terms, ledger, PROCESS_CLOCK, refusals)
  }

  /**
   * Resolves once there are tokens for orders, or after three leases without any. A new ledger grants nothing at first.
   * @param signal ends the wait
   * @param sayWaiting is called once if it lasts longer than a second
   */
  async opened(signal?: AbortSignal, sayWaiting: () => void = () => undefined): Promise<void> {
    if (signal?.aborted) return
    const { promise, resolve } = Promise.withResolvers<void>()
    signal?.addEventListener('abort', () => resolve(), { once: true })
    const giveUp = this.#clock.after(this.#terms.leaseMs * OPENING_LEASES, resolve)
    const sayNothing = this.#clock.after(1000, sayWaiting)
    let wait: (() => void) | undefined
    const attempt = async (): Promise<void> => {
      await this.#settle()
      if (this.#holder.lease.free('orders') > 0 || this.#isClosed) return resolve()
      const until = Math.max(this.#holder.awayUntil, this.#lines.orders.emptyUntil)
      wait = this.#clock.after(Math.max(10, until - this.#clock.now()), () => void attempt())
    }
    void attempt()
    await promise
    sayNothing()
    giveUp()
    wait?.()
  }

  admit(budgetClass: BudgetClass, user: string, source?: () => string): Admission | Promise<Admission> {
    const call = new BudgetCall(this.#refusals, this.#sources[budgetClass], budgetClass, user, source)
    const hold = call.hold()
    if (hold === undefined) return this.#admit(budgetClass, user, call)
    if (hold.limited === 'all' && call.mayProbe) return this.#admitProbe(budgetClass, user, call)
    return this.#refuse(budgetClass, hold)
  }

  spread(count: number): number {
    // The ledger does not count by class, so the calls of this process have to stand for the calls of all instances.
    const part = this.#demand.partOtherThan('otps')
    const others = this.#holder.used.map((used) => used * part)
    return spreadMs(count, this.#terms.windows, others)
  }

  /** For each window the calls that are left for orders: undefined while the ledger, which alone knows them, is away. */
  left(): { readonly windowMs: number; readonly calls: number | undefined; readonly limit: number }[] {
    return this.#terms.windows.map(({ windowMs, ceilings }, at) => {
      const limit = ceilings.orders
      const calls = Math.max(0, limit - (this.#holder.used[at] ?? 0))
      return { windowMs, limit, calls: this.#holder.hasReplied === true ? calls : undefined }
    })
  }

  /** The tokens of a class that this process has leased and not used yet. */
  leased(budgetClass: BudgetClass): number {
    return this.#holder.lease.free(budgetClass)
  }

  /** Whether upstream refuses the calls of a class to all users at present. */
  isHeldBack(budgetClass: BudgetClass): boolean {
    return this.#refusals.isHeldBack(budgetClass)
  }

  /** How many users upstream limits at present, by class. */
  get usersHeldBack(): ByClass {
    return this.#refusals.usersHeldBack
  }

  /** Whether the ledger cannot be reached at present. An attempt that is under way has not reached it yet. */
  get isAlone(): boolean {
    return this.#holder.hasReplied === false
  }

  /** Returns what was not spent. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#cancelTimer()
    for (const each of BUDGET_CLASSES) this.#lines[each].dismiss()
    if (!this.#holder.isAway) await this.#holder.leave()
    this.#refusals.close()
  }

  #admit(budgetClass: BudgetClass, user: string, call: BudgetCall): Admission | Promise<Admission> {
    this.#shares.noteAsked(budgetClass, user)
    const portion = this.#shares.portion(budgetClass, user)
    if (portion !== 'none') this.#demand.note(budgetClass, portion)
    const line = this.#lines[budgetClass]
    if (line.length === 0 && portion !== 'none') {
      const token = this.#take(budgetClass, user)
      if (token !== undefined) {
        if (budgetClass === 'orders') this.#keepReady()
        return this.#grant(budgetClass, token, call)
      }
    }
    // Tokens that other users no longer use may be for a user who has had a share.
    const mayHaveMore = portion !== 'none' || this.#clock.now() >= this.#holder.repliedAt + this.#terms.refreshMs
    const isShort = line.emptyMs > 0 || this.#holder.isAway || !mayHaveMore
    if (isShort || !line.hasRoomFor(user) || this.#isClosed) return this.#refuse(budgetClass)
    const turn = line.wait(user)
    void this.#settle()
    return turn.then((token) =>
      token === undefined ? this.#refuse(budgetClass) : this.#grant(budgetClass, token, call),
    )
  }

  /** Admits a call of a class that is held back, if it is the one that shows whether upstream still refuses the class. */
  async #admitProbe(budgetClass: BudgetClass, user: string, call: BudgetCall): Promise<Admission> {
    await call.takeProbe()
    const hold = call.hold()
    // Upstream may have refused the user meanwhile.
    const admission = hold === undefined ? await this.#admit(budgetClass, user, call) : this.#refuse(budgetClass, hold)
    if (admission.is === 'refused') call.end()
    return admission
  }

  /** @param hold why the call is refused: without one, there is no token */
  #refuse(budgetClass: BudgetClass, hold?: Hold): Refused {
    const { limited, leftMs } = hold ?? { limited: 'all', leftMs: this.#lines[budgetClass].emptyMs }
    this.counts[limited === 'user' ? 'limited' : 'refused'][budgetClass]++
    return { is: 'refused', limited, retryAfterMs: Math.max(SOON_MS, Math.ceil(leftMs)) }
  }

  #take(budgetClass: BudgetClass, subject: string): Token | undefined {
    const token = this.#holder.take(budgetClass)
    if (token !== undefined) this.#shares.noteTaken(budgetClass, subject)
    if (token?.isAlone) this.counts.alone++
    return token
  }

  #grant(budgetClass: BudgetClass, token: Token, call: BudgetCall): Admission {
    this.counts.granted[budgetClass]++
    return { is: 'granted', reservation: call.grant(token) }
  }

  #keepReady(): void {
    if (this.#holder.lease.free('orders') * 2 > this.#terms.readyOrders) return
    if (!this.#holder.isAway && this.#lines.orders.emptyMs <= 0) void this.#settle()
  }

  /** Reports to the ledger, and serves the calls that wait. One report at a time. */
  async #settle(): Promise<void> {
    if (this.#isSettling || this.#isClosed) return
    const wanted = this.#demand.wanted(this.#lines, this.#shares)
    this.#isSettling = true
    // If it failed otherwise, no call would get a token of the ledger any more.
    const waitMs = await this.#holder.settle(wanted, () => this.#serveAll()).finally(() => (this.#isSettling = false))
    if (waitMs !== undefined) for (const each of BUDGET_CLASSES) this.#lines[each].noteReply(waitMs[each])
    this.#serveAll()
    this.#schedule()
  }

  #serveAll(): void {
    for (const each of BUDGET_CLASSES) this.#serve(each)
  }

  #serve(budgetClass: BudgetClass): void {
    const line = this.#lines[budgetClass]
    const portion = (subject: string): Portion => this.#shares.portion(budgetClass, subject)
    for (const each of ['equal', 'more']) {
      line.serve((subject) => (portion(subject) === each ? this.#take(budgetClass, subject) : undefined))
    }
    line.dismiss((subject) => portion(subject) === 'none')
    if (line.length === 0) return
    // A call that came after the report was sent may still get a token.
    if (line.emptyMs <= 0 && !this.#holder.isAway) void this.#settle()
    else line.dismiss()
  }

  /** Plans the next report: long before the lease ends, or when orders may have tokens again. */
  #schedule(): void {
    this.#cancelTimer()
    if (this.#isClosed) return
    const now = this.#clock.now()
    const { emptyUntil } = this.#lines.orders
    const isShort = this.#holder.lease.free('orders') < this.#terms.readyOrders && emptyUntil > now
    const renewMs = this.#terms.leaseMs * LEDGER.renewPart
    if (this.#holder.isAway) return this.#sleepUntil(this.#holder.awayUntil)
    this.#sleepUntil(now + (isShort ? Math.min(renewMs, emptyUntil - now) : renewMs))
  }

  #sleepUntil(due: number): void {
    // Node.js warns of a negative time, which a late timer would leave here.
    const leftMs = Math.max(0, due - this.#clock.now())
    this.#cancelTimer = this.#clock.after(Math.min(leftMs, WATCH_MS), () => {
      if (leftMs <= WATCH_MS || this.#holder.lease.isOver) void this.#settle()
      else this.#sleepUntil(due)
    })
  }
}
