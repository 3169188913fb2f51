import { randomFrom } from '../../../sandbox/upstream/market.ts'
import type { Span } from '../fault.ts'
import { ALL_FAULTS } from '../faults/all.ts'
import type { Plan, PlannedFault } from '../plan.ts'
import { LASTS_MS, planOf, QUIET_MS } from '../schedule.ts'
import type { Wishes } from './patch.ts'

const FOR_MS = 35_000
/** The pause between two faults. */
const APART_MS: Span = { least: 2000, most: 5000 }
/** Of faults that come together each begins so long after the one before. */
const LATER_MS = 600
/** What comes of a fault needs so long to be seen. */
const LEAST_LEFT_MS = 5000

/** The plan of a seed, as far as a patch has no wishes. */
export function planFor(seed: number, wishes: Wishes): Plan {
  const { fleet, faults, operators = 1, users = 0, forMs = FOR_MS } = wishes
  const plan = planOf(seed, forMs)
  const settings = { ...plan.fleet.settings, WORKERS: '1', ...fleet?.settings }
  const acting = Array.from({ length: operators }, (_each, nth) => ({
    name: `operator ${nth}`,
    seed: seed * 100 + nth,
  }))
  const more = Array.from({ length: Math.max(0, users - plan.users.length) }, (_each, nth) => ({
    name: `more${nth}`,
    seed: seed * 100 + nth,
  }))
  return {
    ...plan,
    users: [...plan.users, ...more],
    fleet: { ...plan.fleet, redis: 'single', ...fleet, settings },
    operators: acting,
    faults: faults === undefined ? plan.faults : wished(seed, faults, wishes, forMs),
  }
}

/** One fault after the other, or all of them at a time: those that are chosen by the same seed choose the same instance. */
function wished(
  seed: number,
  names: readonly string[],
  { isTogether, lastsMs }: Wishes,
  forMs: number,
): PlannedFault[] {
  const random = randomFrom(seed)
  const between = ({ least, most }: Span): number => Math.round(least + random() * (most - least))
  const faults: PlannedFault[] = []
  for (let at = QUIET_MS; at < forMs - LEAST_LEFT_MS && names.length > 0; at += between(APART_MS)) {
    const own = Math.floor(random() * 2 ** 31)
    const chosen = isTogether === true ? names : [names[own % names.length] as string]
    const added = chosen.map((name, nth): PlannedFault => {
      const from = at + nth * LATER_MS
      const usually = ALL_FAULTS.find((fault) => fault.name === name)?.lastsMs ?? LASTS_MS
      return { name, at: from, forMs: Math.min(lastsMs ?? between(usually), forMs - from), seed: own }
    })
    faults.push(...added)
    at = Math.max(...added.map((each) => each.at + each.forMs))
  }
  return faults
}
