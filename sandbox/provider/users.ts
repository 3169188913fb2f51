import { randomUUID } from 'node:crypto'

/** The account that exists from the start, so that a log-in can be tried without signing up. */
export const DEMO_EMAIL = 'demo@example.test'

/** A user of the sandbox. There is no password: whatever is typed is accepted. */
export interface User {
  /** Opaque id of the user; tokens carry it, trading accounts hang on it. */
  accountId: string
  email: string
}

/** The users, by e-mail address in lower case. */
export class Users {
  readonly #byEmail = new Map<string, User>([[DEMO_EMAIL, { accountId: 'user-demo', email: DEMO_EMAIL }]])

  byEmail(email: string): User | undefined {
    return this.#byEmail.get(normalise(email))
  }

  byAccountId(accountId: string): User | undefined {
    return [...this.#byEmail.values()].find((user) => user.accountId === accountId)
  }

  /** Creates a user, or answers undefined when the address is taken. */
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
