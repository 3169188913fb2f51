import { randomBytes } from 'node:crypto'
import type { Account } from './accounts.ts'

const LIFETIME_MS = 120_000

/** The one-time passwords that open an authenticated WebSocket: single use, 120 s, for one account. */
export class OneTimePasswords {
  /** Every password, and every complete URL with one, ever given out. */
  readonly issued = new Set<string>()
  readonly #waiting = new Map<string, { account: Account; expiresAtMs: number }>()
  readonly #wsUrl: string

  constructor(wsUrl: string) {
    this.#wsUrl = wsUrl
  }

  /** The URL to connect to. */
  issue(account: Account): string {
    const password = randomBytes(24).toString('base64url')
    const url = `${this.#wsUrl}/trading/v1/options/ws/${account.type}?otp=${password}`
    this.#waiting.set(password, { account, expiresAtMs: Date.now() + LIFETIME_MS })
    this.issued.add(password).add(url)
    return url
  }

  /** Uses a password up, and answers with its account when it was still good. */
  redeem(password: string): Account | undefined {
    const found = this.#waiting.get(password)
    this.#waiting.delete(password)
    return found && found.expiresAtMs > Date.now() ? found.account : undefined
  }
}
