import { createHmac, randomBytes, randomUUID, timingSafeEqual } from 'node:crypto'

/** The user that exists from the start, so that a login is possible without a sign-up. */
export const DEMO_EMAIL = 'demo@example.test'
/** The password of that user, which the login form shows. */
export const DEMO_PASSWORD = 'any'

/** A user of the sandbox. */
export interface User {
  /** The opaque id of the user in tokens, by which the trading service finds the user. */
  accountId: string
  email: string
  /** A keyed hash. The password itself is not kept, since developers may type a real one. */
  password: Buffer
}

/** All users. E-mail addresses are case-insensitive. */
export class Users {
  readonly #byEmail = new Map<string, User>()
  /** Never leaves this process, so the hashes are of no use elsewhere. */
  readonly #key = randomBytes(32)

  constructor() {
    this.#add('user-demo', DEMO_EMAIL, DEMO_PASSWORD)
  }

  byEmail(email: string): User | undefined {
    return this.#byEmail.get(normalise(email))
  }

  byAccountId(accountId: string): User | undefined {
    return [...this.#byEmail.values()].find((user) => user.accountId === accountId)
  }

  hasPassword(user: User, password: string): boolean {
    return timingSafeEqual(user.password, this.#hash(password))
  }

  /** Creates a user. @returns undefined if the address is taken */
  signUp(email: string, password: string): User | undefined {
    if (this.byEmail(email)) return undefined
    return this.#add(`user-${randomUUID()}`, normalise(email), password)
  }

  #add(accountId: string, email: string, password: string): User {
    const user = { accountId, email, password: this.#hash(password) }
    this.#byEmail.set(email, user)
    return user
  }

  #hash(password: string): Buffer {
    return createHmac('sha256', this.#key).update(password).digest()
  }
}

function normalise(email: string): string {
  return email.trim().toLowerCase()
}
