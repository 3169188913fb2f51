/** How a fleet is built. */
export interface FleetPlan {
  readonly instances: number
  readonly redis: 'single' | 'sentinel' | 'cluster'
  /** Whether the provider gives refresh tokens, and how long access tokens live (s). */
  readonly refreshTokens: boolean
  readonly accessTokenSeconds: number
  /**
   * By how much the clock of each instance is wrong (s), or `sleeps`: the monotonic clock stands still while the instance does, as
   * on a machine that is suspended. All are right if it is left out.
   */
  readonly clocks?: readonly (number | 'sleeps')[]
  /** Whether logins are OpenID Connect. */
  readonly isOpenId?: boolean
  /** Whether the provider and the trading service have names, and not only addresses. */
  readonly isNamed?: boolean
  /** Whether the name of the provider has a second address, at which nobody listens, and first packets to the other can be lost. */
  readonly hasTwoAddresses?: boolean
  /** The settings of each instance that differ from the defaults. */
  readonly settings: Readonly<Record<string, string>>
}

/** Somebody who acts during the whole run, by random numbers of their own. */
export interface Actor {
  readonly name: string
  readonly seed: number
}

/** A fault, when it begins, for how long it is on (ms), and the seed of what it chooses. */
export interface PlannedFault extends Actor {
  readonly at: number
  readonly forMs: number
}

/** A whole run as data. Less of it is a run, too, which is how a failing one is made smaller. */
export interface Plan {
  readonly seed: number
  readonly forMs: number
  readonly fleet: FleetPlan
  readonly users: readonly Actor[]
  /** Users whose page has the browser package. */
  readonly pages: readonly Actor[]
  /** Users whose page buys on a socket of the browser package. */
  readonly buyers?: readonly Actor[]
  readonly operators: readonly Actor[]
  readonly faults: readonly PlannedFault[]
}
