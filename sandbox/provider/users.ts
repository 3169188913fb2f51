import { randomUUID } from 'node:crypto'

/** The user that exists from the start, so that a login is possible without a sign-up. */
export const DEMO_EMAIL = 'demo@example.test'

/** A user of the sandbox. Every password is accepted. */
export interface User {
  /** The opaque id of the user in tokens, by which the trading service finds the user. */
  accountId: string
  email: string
}

/** All users. E-mail addresses are case-insensitive. */
export class Users {
  readonly #byEmail = new Map<string, User>([[DEMO_EMAIL, { accountId: 'user-demo', email: DEMO_EMAIL }]])

  byEmail(email: string): User | undefined {
    return this.#byEmail.get(normalise(email))
  }

  byAccountId(accountId: string): User | undefined {
    return [...this.#byEmail.values()].find((user) => user.accountId === accountId)
  }

  /** Creates a user. @returns undefined if the address is taken */
  signUp(email: string): User | undefined {
    const address = normalise(email)
    if (this.#byEmail.has(address)) return undefined
    const user = { accountId: `user-${randomUUID()}`, email: address }
    this.#byEmail.set(address, user)
    return user
  }
}

function normalise(email: string): string {
  return email.trim().toLowerCase()
}
