import type { Plan } from './plan.ts'

/** The first fault of a plan waits for the users to log in. */
const QUIET_MS = 2500
/** A plan is made shorter by so much at a time. */
const SHORTER = 0.6

/**
 * Makes a failing plan smaller for as long as it still fails: fewer faults, fewer users and operators, shorter, a simpler fleet.
 * @param stillFails runs a plan as often as it likes
 * @param isOver whether there is no time left for more
 */
export async function shrunk(
  plan: Plan,
  stillFails: (plan: Plan) => Promise<boolean>,
  isOver: () => boolean,
): Promise<Plan> {
  const tried = new Set<string>()
  let best = plan
  let candidates = smaller(best)
  for (let next = candidates.next(); next.done !== true && !isOver(); next = candidates.next()) {
    const candidate = next.value
    const text = JSON.stringify(candidate)
    if (tried.has(text)) continue
    tried.add(text)
    if (!(await stillFails(candidate))) continue
    best = candidate
    candidates = smaller(best)
  }
  return best
}

/** Plans that are a step smaller, the largest steps first. */
function* smaller(plan: Plan): Generator<Plan> {
  const { faults, users, pages, buyers = [], operators, forMs, fleet } = plan
  for (const left of without(faults)) yield { ...plan, faults: left }
  for (const left of without(users)) yield { ...plan, users: left }
  for (const left of without(pages)) yield { ...plan, pages: left }
  for (const left of without(buyers)) yield { ...plan, buyers: left }
  for (const left of without(operators)) yield { ...plan, operators: left }
  const waitMs = Math.min(...faults.map(({ at }) => at)) - QUIET_MS
  if (waitMs > 0 && waitMs < Infinity)
    yield { ...plan, forMs: forMs - waitMs, faults: faults.map((fault) => ({ ...fault, at: fault.at - waitMs })) }
  if (faults.every(({ at }) => at < forMs * SHORTER)) yield { ...plan, forMs: Math.round(forMs * SHORTER) }
  for (const name of Object.keys(fleet.settings)) {
    const settings = Object.fromEntries(Object.entries(fleet.settings).filter(([each]) => each !== name))
    yield { ...plan, fleet: { ...fleet, settings } }
  }
  if (fleet.instances > 1) yield { ...plan, fleet: { ...fleet, instances: fleet.instances - 1 } }
}

/** A list without each half of it, each quarter, and so on down to each single one. */
function* without<Item>(items: readonly Item[]): Generator<Item[]> {
  for (let size = Math.ceil(items.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2))
    for (let from = 0; from < items.length; from += size) yield items.toSpliced(from, size)
}
