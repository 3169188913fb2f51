import { randomUUID } from 'node:crypto'
import { BUDGET_CLASSES, byClass, type BudgetClass, type ByClass } from '../../config/upstream-budget.ts'
import { retryAfterMs } from '../../http/retry-after.ts'
import { SharedState } from '../../store/shared-state.ts'
import type { Clock } from './clock.ts'
import {
  isSuspected,
  MAX_HOLD_MS,
  mayProbe,
  suspicionAfter,
  SUSPICIONS,
  type CallEvent,
  type Caller,
  type Suspicions,
} from './suspicion.ts'

/** The reason why a call may not be sent: the users whom upstream limits, one or all together, and for how much longer (ms). */
export interface Hold {
  readonly limited: 'user' | 'all'
  readonly leftMs: number
}

/** For how long a caller is held back when upstream's 429 does not say, and at least. */
const DEFAULT_MS = 10_000
const LEAST_MS = 1000
/** How often a process looks whether everything is over. */
const WATCH_MS = 1000
/** Users who are held back at once: more than upstream can refuse within a minute. */
const MAX_USERS = 10_000

/**
 * The consequences of upstream's own 429s for the calls of this process. A 429 concerns its caller, who is held back on all instances. Only
 * when several users are refused within a short time may it concern the class: then the call of another user decides, the probe.
 */
export class UpstreamRefusals {
  /** The suspicions of all instances, once they are shared. */
  readonly suspicions: SharedState<Suspicions>
  readonly #clock: Clock
  readonly #nameOf: (user: string) => string
  readonly #holds: Readonly<Record<BudgetClass, UserHolds>>
  #isCalm = true
  #cancelWatch: () => void = () => undefined

  /** @param nameOf gives a user, or an address, a name that all instances compute alike, and that does not reveal the user */
  constructor(clock: Clock, nameOf: (user: string) => string) {
    this.#clock = clock
    this.#nameOf = nameOf
    this.#holds = byClass(() => new UserHolds(clock))
    this.suspicions = new SharedState(SUSPICIONS, () => this.#onNews(), undefined, clock)
  }

  /** Whether no user is held back and no class suspected, so that no call need be looked at. */
  get isCalm(): boolean {
    return this.#isCalm
  }

  /** The name of a caller for all other methods. */
  named({ user, source }: Caller): Caller {
    const name = this.#nameOf(user)
    return { user: name, source: source === user ? name : this.#nameOf(source) }
  }

  /** Why a call of this caller may not be sent now. Without a caller, only a hold of the whole class counts. */
  hold(budgetClass: BudgetClass, caller: Caller | undefined): Hold | undefined {
    const ofUser = caller === undefined ? 0 : this.#holds[budgetClass].leftMs(caller.user)
    if (ofUser > 0) return { limited: 'user', leftMs: ofUser }
    const ofAll = this.suspicions.current[budgetClass].heldUntil - this.suspicions.now
    return ofAll > 0 ? { limited: 'all', leftMs: ofAll } : undefined
  }

  /** Whether a call of this caller would be a probe, as far as this process knows. */
  mayProbe(budgetClass: BudgetClass, caller: Caller): boolean {
    return mayProbe(this.suspicions.current[budgetClass], caller, this.suspicions.now)
  }

  /**
   * Makes a call of this caller the probe of all instances.
   * @returns the name of the probe, and whether it is the only one: false if another call is
   */
  takeProbe(budgetClass: BudgetClass, caller: Caller): { readonly probe: string; readonly taken: Promise<boolean> } {
    const probe = randomUUID()
    const noted = this.note(budgetClass, { is: 'probing', caller, probe })
    return { probe, taken: noted.then((suspicions) => suspicions[budgetClass].probe?.id === probe) }
  }

  /** Upstream has answered a call with 429. @param retryAfter what its header of this name says */
  refused(budgetClass: BudgetClass, caller: Caller, retryAfter: string | undefined, probe: string | undefined): void {
    const waitMs = Math.ceil(Math.min(MAX_HOLD_MS, Math.max(LEAST_MS, retryAfterMs(retryAfter) ?? DEFAULT_MS)))
    this.#holds[budgetClass].hold(caller.user, waitMs)
    void this.note(budgetClass, { is: 'refused', caller, waitMs, probe })
  }

  /** Whether all calls of a class are held back at present. */
  isHeldBack(budgetClass: BudgetClass): boolean {
    return this.suspicions.current[budgetClass].heldUntil > this.suspicions.now
  }

  /** How many users are held back at present, by class. */
  get usersHeldBack(): ByClass {
    return byClass((each) => this.#holds[each].size)
  }

  close(): void {
    this.#cancelWatch()
    void this.suspicions.close()
  }

  /** Notes what happens to a call. Resolves with what is known then, once all instances can know it, or the store is away. Never rejects. */
  async note(budgetClass: BudgetClass, event: CallEvent): Promise<Suspicions> {
    const { state } = await this.suspicions.change((all, now) => ({
      ...all,
      [budgetClass]: suspicionAfter(all[budgetClass], event, now),
    }))
    return state
  }

  #onNews(): void {
    const { now } = this.suspicions
    for (const each of BUDGET_CLASSES) {
      for (const [name, [, until]] of Object.entries(this.suspicions.current[each].users)) {
        this.#holds[each].hold(name, until - now)
      }
    }
    this.#watch()
  }

  #watch(): void {
    this.#cancelWatch()
    this.#isCalm = BUDGET_CLASSES.every(
      (each) => this.#holds[each].size === 0 && !isSuspected(this.suspicions.current[each], this.suspicions.now),
    )
    if (!this.#isCalm) this.#cancelWatch = this.#clock.after(WATCH_MS, () => this.#watch())
  }
}

/** The users whom this process holds back, and until when, by the monotonic clock. */
class UserHolds {
  readonly #clock: Clock
  readonly #until = new Map<string, number>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** How many users are held back. */
  get size(): number {
    const now = this.#clock.now()
    for (const [name, until] of this.#until) if (until <= now) this.#until.delete(name)
    return this.#until.size
  }

  /** Holds a user back for at least this much longer. */
  hold(name: string, ms: number): void {
    if (ms <= 0) return
    const until = Math.max(this.#until.get(name) ?? 0, this.#clock.now() + ms)
    // Whoever is held back already takes nobody else's place.
    this.#until.delete(name)
    const [oldest] = this.#until.size < MAX_USERS ? [] : this.#until.keys()
    if (oldest !== undefined) this.#until.delete(oldest)
    this.#until.set(name, until)
  }

  /** For how much longer a user is held back (ms); 0 or less for a user who is not. */
  leftMs(name: string): number {
    return (this.#until.get(name) ?? -Infinity) - this.#clock.now()
  }
}
