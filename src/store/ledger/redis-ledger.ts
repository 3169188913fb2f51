import { ledgerKey } from '../keys.ts'
import type { RedisCommands } from '../redis-link.ts'
import { runScript, type Ask } from '../script.ts'
import { settleScript } from './ledger-script.ts'
import { LEASE_SKEW_MS, type Ledger, type LedgerReply, type LedgerReport, type LedgerTerms } from './ledger.ts'

const SETTLE = settleScript()

/** The ledger in Redis, for all instances that use the same name. */
export class RedisLedger implements Ledger {
  readonly #ask: Ask<RedisCommands>
  readonly #key: string
  readonly #terms: string

  constructor(name: string, terms: LedgerTerms, ask: Ask<RedisCommands>) {
    this.#ask = ask
    this.#key = ledgerKey(name)
    this.#terms = JSON.stringify({ ...terms, quietMs: terms.leaseMs + LEASE_SKEW_MS })
  }

  async settle(report: LedgerReport): Promise<LedgerReply> {
    // The server watches this key, so it says when others report: that costs less than a command that forbids it each time.
    const reply = await this.#ask((redis) =>
      runScript(redis, SETTLE, [this.#key], [this.#terms, JSON.stringify(report)]),
    )
    return JSON.parse(reply as string) as LedgerReply
  }
}
