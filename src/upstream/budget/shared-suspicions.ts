import { BUDGET_CLASSES, type BudgetClass } from '../../config/upstream-budget.ts'
import type { SharedDocument } from '../../store/shared-document.ts'
import type { Clock } from './clock.ts'
import { pruned, UNSUSPECTED, type Suspicion } from './suspicion.ts'

/** The suspicion of each class. */
type Suspicions = Readonly<Record<BudgetClass, Suspicion>>

/** Turns the suspicion of a class into the suspicion after an event. Called again where another instance was faster. */
export type Change = (suspicion: Suspicion, now: number) => Suspicion

interface Pending {
  readonly budgetClass: BudgetClass
  readonly change: Change
  readonly done: () => void
}

const NOTHING: Suspicions = { orders: UNSUSPECTED, otps: UNSUSPECTED, reads: UNSUSPECTED }
/** Longer than anything in the document has an effect. */
const TTL_MS = 600_000
/** How often a change is tried if other instances are faster. Each time, one of them has written all that it had to. */
const MAX_TRIES = 20

/**
 * The knowledge of this process and, through the store, of all others about upstream's 429s. A change has an effect here at once, and
 * everywhere as soon as it is written. While the store is away, each process knows only what it has seen itself.
 */
export class SharedSuspicions {
  readonly #clock: Clock
  readonly #onNews: () => void
  #document: SharedDocument | undefined
  /** The content of the store, as far as this process knows. */
  #written = NOTHING
  /** The same with the changes that are yet to be written. */
  #current = NOTHING
  /** The store's clock is ahead of this process's monotonic clock by so much. */
  #aheadMs: number
  #pending: Pending[] = []
  #isStale = false
  #isExchanging = false

  /** @param onNews something has changed */
  constructor(clock: Clock, onNews: () => void) {
    this.#clock = clock
    this.#onNews = onNews
    this.#aheadMs = clock.timeOfDay() - clock.now()
  }

  /** The store's clock, as far as this process knows it. */
  get now(): number {
    return Math.floor(this.#clock.now() + this.#aheadMs)
  }

  of(budgetClass: BudgetClass): Suspicion {
    return this.#current[budgetClass]
  }

  /** Shares the suspicions through this document. Without one, this process is alone. */
  share(document: SharedDocument | undefined): void {
    this.#document = document
    this.reread()
  }

  /** Another instance has changed the document, or may have. */
  reread(): void {
    if (this.#document === undefined) return
    this.#isStale = true
    void this.#exchange()
  }

  /** Applies a change. Resolves once all instances can know it, or the store is away. Never rejects. */
  change(budgetClass: BudgetClass, change: Change): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#pending.push({ budgetClass, change, done: resolve })
    this.#current = applied(this.#current, [{ budgetClass, change }], this.now)
    this.#onNews()
    void this.#exchange()
    return promise
  }

  close(): void {
    this.#document?.close()
    this.#document = undefined
  }

  /** Writes the pending changes, or reads the document again: one after the other. */
  async #exchange(): Promise<void> {
    if (this.#isExchanging) return
    this.#isExchanging = true
    while (this.#pending.length > 0 || this.#isStale) {
      this.#isStale = false
      const changes = this.#pending
      this.#pending = []
      // The exchange fails while the store is away, which the store logs, or while another version has written the text.
      const isWritten = this.#document !== undefined && (await this.#write(this.#document, changes).catch(() => false))
      if (!isWritten) this.#written = applied(this.#written, changes, this.now)
      this.#current = applied(this.#written, this.#pending, this.now)
      this.#onNews()
      for (const { done } of changes) done()
    }
    this.#isExchanging = false
  }

  /** Returns false if other instances were always faster. @throws StoreUnavailable */
  async #write(document: SharedDocument, changes: readonly Pending[]): Promise<boolean> {
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      // From before the reading, so that no time left is taken for longer than it is.
      const sentAt = this.#clock.now()
      const { version, text, now } = await document.read()
      const next = applied(parsed(text), changes, now)
      if (changes.length === 0 || (await document.write(version, JSON.stringify(next), TTL_MS))) {
        this.#aheadMs = now - sentAt
        this.#written = next
        return true
      }
    }
    return false
  }
}

function applied(before: Suspicions, changes: readonly Omit<Pending, 'done'>[], now: number): Suspicions {
  const after = { ...before }
  for (const each of BUDGET_CLASSES) after[each] = pruned(after[each], now)
  for (const { budgetClass, change } of changes) after[budgetClass] = change(after[budgetClass], now)
  return after
}

/** A text that an instance of this version has written, else nothing. */
function parsed(text: string): Suspicions {
  return text === '' ? NOTHING : (JSON.parse(text) as Suspicions)
}
