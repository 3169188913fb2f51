import { randomFrom } from '../../sandbox/upstream/market.ts'
import { ALL_FAULTS } from './faults/all.ts'
import type { Actor, FleetPlan, Plan, PlannedFault } from './plan.ts'

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
  const fleet = fleetOf(random)
  return {
    seed,
    forMs,
    fleet,
    users: actors(['ada', 'bob', 'cleo', 'dan', 'eve']),
    pages: actors(['pat']),
    operators: actors(['operator']),
    faults: faultsOf(random, forMs, fleet),
  }
}

function fleetOf(random: () => number): FleetPlan {
  const maybe = (share: number, settings: Record<string, string>) => (random() < share ? settings : {})
  const kind = random()
  const refreshTokens = random() < 0.5
  return {
    instances: 2,
    redis: kind < 0.7 ? 'single' : kind < 0.85 ? 'sentinel' : 'cluster',
    refreshTokens,
    // Without refresh tokens a session ends with its token, and a page cannot know when.
    accessTokenSeconds: random() < 0.5 && refreshTokens ? 20 : 3600,
    settings: {
      ...maybe(0.25, { WORKERS: '2' }),
      ...maybe(0.5, {
        UPSTREAM_BUDGET: random() < 0.4 ? '6000/60' : `${80 + Math.floor(random() * 80)}/10,450/60`,
        UPSTREAM_BUDGET_INSTANCES: '4',
      }),
      ...maybe(0.5, { PUBLIC_FEED: 'shared', FEED_LINGER_SECONDS: '1' }),
    },
  }
}

function faultsOf(random: () => number, forMs: number, fleet: FleetPlan): PlannedFault[] {
  const faults: PlannedFault[] = []
  const possible = ALL_FAULTS.filter(({ fits }) => fits?.(fleet) ?? true)
  const pick = (): string => possible[Math.floor(random() * possible.length)]?.name ?? ''
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
