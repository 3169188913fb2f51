import type { Fleet, Instance } from './fleet.ts'
import type { Touch } from './history.ts'
import type { FleetPlan } from './plan.ts'

/** A fault that is on. */
export interface Applied {
  /** What it does this time, in a few words for the timeline. */
  readonly note: string
  /** Whom it may concern, from now until it has settled. Nobody else may notice it. */
  readonly touches: readonly Touch[]
  /** How long after its end it may still be noticed (ms). */
  readonly settleMs: number
  readonly heal: () => Promise<void> | void
}

/** Least and most of a time (ms). */
export interface Span {
  readonly least: number
  readonly most: number
}

/** Something that breaks in production. Each is a file of its own in `faults/`, and is listed in `faults/all.ts`. */
export interface Fault {
  readonly name: string
  /** What breaks, in a sentence. */
  readonly sentence: string
  /** Whether a fleet can have it; any can if it is left out. */
  readonly fits?: (fleet: FleetPlan) => boolean
  /** How long a run has to be at least (ms), if it takes longer than a short one has time for. */
  readonly leastRunMs?: number
  /** For how long it is on, if that is not as long as most are. */
  readonly lastsMs?: Span
  /** Begins it. All that it chooses, it chooses by these random numbers, so that it repeats itself. */
  readonly apply: (fleet: Fleet, random: () => number) => Promise<Applied> | Applied
}

/** One of the instances. */
export function anyInstance({ instances }: Fleet, random: () => number): Instance {
  const chosen = instances[Math.floor(random() * instances.length)]
  if (chosen === undefined) throw new Error('a fleet without instances')
  return chosen
}
