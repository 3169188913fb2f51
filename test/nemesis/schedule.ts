import { randomFrom } from '../../sandbox/upstream/market.ts'
import type { Span } from './fault.ts'
import { PLANNED_FAULTS } from './faults/all.ts'
import { KEEPER } from './operators/operator.ts'
import type { Actor, FleetPlan, Plan, PlannedFault } from './plan.ts'

/** The pause between two faults, or two pairs of them. */
const APART_MS: Span = { least: 3000, most: 7000 }
/** For how long a fault is on that says nothing else. */
export const LASTS_MS: Span = { least: 1500, most: 5000 }
const SECOND_AFTER_MS: Span = { least: 0, most: 1000 }
/** The first fault waits for the users to log in. */
export const QUIET_MS = 2500
const PAIRS = 0.4
/** By how much the clock of an instance may be wrong (s). */
const CLOCKS = [0, 0, 420, -2400, 'sleeps'] as const

/** Makes the plan of a seed. */
export function planOf(seed: number, forMs: number): Plan {
  const random = randomFrom(seed)
  const actors = (names: readonly string[]): Actor[] => names.map((name) => ({ name, seed: seedFrom(random) }))
  const fleet = fleetOf(random)
  const users = actors(['ada', 'bob', 'cleo', 'dan', 'eve'])
  const pages = actors(['pat'])
  const operators = actors(['operator'])
  // Not of the same numbers: what a seed has meant before stays.
  const buyers = [{ name: 'bea', seed }]
  const faults = faultsOf(random, forMs, fleet)
  // A fault that gives an instance the wrong secrets takes those of a rotation away.
  if (faults.every(({ name }) => name !== 'wrong-secrets')) operators.push({ name: KEEPER, seed: 0 })
  return { seed, forMs, fleet, users, pages, buyers, operators, faults }
}

function fleetOf(random: () => number): FleetPlan {
  const maybe = (share: number, settings: Record<string, string>) => (random() < share ? settings : {})
  const kind = random()
  const refreshTokens = random() < 0.6
  return {
    instances: 2,
    redis: kind < 0.7 ? 'single' : kind < 0.85 ? 'sentinel' : 'cluster',
    refreshTokens,
    // Without refresh tokens a session ends with its token, and a page cannot know when.
    accessTokenSeconds: random() < 0.7 && refreshTokens ? 20 : 3600,
    settings: {
      ...maybe(0.25, { WORKERS: '2' }),
      ...maybe(0.5, {
        UPSTREAM_BUDGET: random() < 0.4 ? '6000/60' : `${80 + Math.floor(random() * 80)}/10,450/60`,
        UPSTREAM_BUDGET_INSTANCES: '4',
      }),
      ...maybe(0.5, { PUBLIC_FEED: 'shared', FEED_LINGER_SECONDS: '1' }),
      ...maybe(0.6, { UPSTREAM_HEADERS_SECONDS: '3' }),
      ...maybe(0.3, { RELAY_STORE_GRACE_SECONDS: '5' }),
    },
    isOpenId: random() < 0.25,
    isNamed: random() < 0.3,
    hasTwoAddresses: random() < 0.15,
    clocks: [0, CLOCKS[Math.floor(random() * CLOCKS.length)] ?? 0],
  }
}

function faultsOf(random: () => number, forMs: number, fleet: FleetPlan): PlannedFault[] {
  const faults: PlannedFault[] = []
  const possible = PLANNED_FAULTS.filter(({ fits, leastRunMs = 0 }) => leastRunMs <= forMs && (fits?.(fleet) ?? true))
  const between = ({ least, most }: Span): number => Math.round(least + random() * (most - least))
  const add = (at: number): number => {
    const fault = possible[Math.floor(random() * possible.length)]
    const lasts = Math.min(between(fault?.lastsMs ?? LASTS_MS), forMs - at)
    if (fault !== undefined) faults.push({ name: fault.name, at, forMs: lasts, seed: seedFrom(random) })
    return at + lasts
  }
  for (let at = QUIET_MS; at < forMs - LASTS_MS.most; at += between(APART_MS)) {
    const first = at
    at = add(first)
    if (random() < PAIRS) at = Math.max(at, add(first + between(SECOND_AFTER_MS)))
  }
  return faults
}

const seedFrom = (random: () => number): number => Math.floor(random() * 2 ** 31)
