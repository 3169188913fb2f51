/** How a fleet is built. */
export interface FleetPlan {
  readonly instances: number
  readonly redis: 'single' | 'sentinel' | 'cluster'
  /** Whether the provider gives refresh tokens, and how long access tokens live (s). */
  readonly refreshTokens: boolean
  readonly accessTokenSeconds: number
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
  readonly operators: readonly Actor[]
  readonly faults: readonly PlannedFault[]
}
