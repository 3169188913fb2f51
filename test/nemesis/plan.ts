import { randomFrom } from '../../sandbox/upstream/market.ts'
import { ALL_FAULTS } from './faults/all.ts'

/** How a fleet is built. */
export interface FleetPlan {
  readonly instances: number
  readonly redis: 'single'
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

/** The pause between two faults, or two pairs of them. */
const APART_MS = { least: 3000, most: 7000 }
const LASTS_MS = { least: 1500, most: 5000 }
/** The first fault waits for the users to log in. */
const QUIET_MS = 2500
const PAIRS = 0.4

/** Makes the plan of a seed. */
export function planOf(seed: number, forMs: number): Plan {
  const random = randomFrom(seed)
  const actors = (names: readonly string[]): Actor[] => names.map((name) => ({ name, seed: seedFrom(random) }))
  return {
    seed,
    forMs,
    fleet: fleetOf(random),
    users: actors(['ada', 'bob', 'cleo', 'dan', 'eve']),
    operators: actors(['operator']),
    faults: faultsOf(random, forMs),
  }
}

function fleetOf(random: () => number): FleetPlan {
  const maybe = (share: number, settings: Record<string, string>) => (random() < share ? settings : {})
  return {
    instances: 2,
    redis: 'single',
    refreshTokens: random() < 0.5,
    accessTokenSeconds: random() < 0.5 ? 20 : 3600,
    settings: {
      ...maybe(0.25, { WORKERS: '2' }),
      ...maybe(0.4, { UPSTREAM_BUDGET: '6000/60' }),
      ...maybe(0.5, { PUBLIC_FEED: 'shared' }),
    },
  }
}

function faultsOf(random: () => number, forMs: number): PlannedFault[] {
  const faults: PlannedFault[] = []
  const pick = (): string => ALL_FAULTS[Math.floor(random() * ALL_FAULTS.length)]?.name ?? ''
  const between = ({ least, most }: typeof APART_MS): number => Math.round(least + random() * (most - least))
  for (let at = QUIET_MS; at < forMs - LASTS_MS.most; at += between(APART_MS)) {
    const lasts = between(LASTS_MS)
    faults.push({ name: pick(), at, forMs: lasts, seed: seedFrom(random) })
    if (random() < PAIRS)
      faults.push({ name: pick(), at: at + between({ least: 0, most: 1000 }), forMs: lasts, seed: seedFrom(random) })
    at += lasts
  }
  return faults
}

const seedFrom = (random: () => number): number => Math.floor(random() * 2 ** 31)
