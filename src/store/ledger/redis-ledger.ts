import { BUDGET_CLASSES, type BudgetClass } from '../../config/upstream-budget.ts'
import { ledgerChannel, ledgerKey } from '../keys.ts'
import type { RedisCommands, RedisLink } from '../redis-link.ts'
import { HOLD_BACK, settleScript } from './ledger-script.ts'
import {
  LEASE_SKEW_MS,
  type Ledger,
  type LedgerEvents,
  type LedgerReply,
  type LedgerReport,
  type LedgerTerms,
} from './ledger.ts'

/** Runs a command against a deadline. @throws StoreUnavailable */
type Ask = <Reply>(command: (redis: RedisCommands) => Promise<Reply>) => Promise<Reply>

const SETTLE = settleScript()

/** The ledger in Redis, for all instances that use the same name. */
export class RedisLedger implements Ledger {
  readonly #ask: Ask
  readonly #key: string
  readonly #channel: string
  readonly #terms: string
  readonly #subscription: { close(): void }

  constructor(name: string, terms: LedgerTerms, events: LedgerEvents, link: RedisLink, ask: Ask) {
    this.#ask = ask
    this.#key = ledgerKey(name)
    this.#channel = ledgerChannel(name)
    this.#terms = JSON.stringify({ ...terms, quietMs: terms.leaseMs + LEASE_SKEW_MS })
    this.#subscription = link.listen(this.#channel, {
      message: (text) => {
        const [word, ms] = text.split(' ')
        const budgetClass = BUDGET_CLASSES.find((each) => each === word)
        if (budgetClass !== undefined && /^\d{1,10}$/.test(ms ?? '')) events.heldBack(budgetClass, Number(ms))
      },
      up: () => events.newsMissed(),
    })
  }

  async settle(report: LedgerReport): Promise<LedgerReply> {
    const call = { keys: [this.#key], arguments: [this.#terms, JSON.stringify(report)] }
    // The server watches this key, so it says when others report: that costs less than a command that forbids it each time.
    const reply = await this.#ask((redis) => redis.eval(SETTLE, call))
    return JSON.parse(reply as string) as LedgerReply
  }

  async holdBack(budgetClass: BudgetClass, ms: number): Promise<void> {
    const call = { keys: [this.#key], arguments: [budgetClass, String(ms), this.#channel] }
    await this.#ask((redis) => redis.eval(HOLD_BACK, call))
  }

  close(): void {
    this.#subscription.close()
  }
}
