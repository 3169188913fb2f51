import { randomBytes } from 'node:crypto'
import type { Account } from './accounts.ts'

const LIFETIME_MS = 120_000

/** The one-time passwords that open an authenticated WebSocket. Each is for one account and one use, and lasts 120 s. */
export class OneTimePasswords {
  /** All issued passwords and all issued URLs with them. */
  readonly issued = new Set<string>()
  readonly #pending = new Map<string, { account: Account; expiresAtMs: number }>()
  readonly #wsUrl: string

  constructor(wsUrl: string) {
    this.#wsUrl = wsUrl
  }

  /** @returns the URL of the WebSocket with a new password, at this service unless another address is given */
  issue(account: Account, wsUrl = this.#wsUrl): string {
    const password = randomBytes(24).toString('base64url')
    const url = `${wsUrl}/trading/v1/options/ws/${account.type}?otp=${password}`
    this.#pending.set(password, { account, expiresAtMs: Date.now() + LIFETIME_MS })
    this.issued.add(password).add(url)
    return url
  }

  /** Invalidates a password. @returns its account if the password was valid */
  redeem(password: string): Account | undefined {
    const found = this.#pending.get(password)
    this.#pending.delete(password)
    return found && found.expiresAtMs > Date.now() ? found.account : undefined
  }
}
