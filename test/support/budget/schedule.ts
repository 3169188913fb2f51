import type { BudgetClass, BudgetConfig } from '../../../src/config/upstream-budget.ts'
import type { Hold } from '../../../src/upstream/budget/upstream-refusals.ts'

/** What may happen to a simulated world beside calls: how many times in a schedule on average. */
interface Faults {
  readonly crashes: number
  readonly pauses: number
  readonly clockSteps: number
  readonly redisSteps: number
  readonly outages: number
  readonly failovers: number
  readonly lostLedgers: number
  /** 12 s and 20 s. */
  readonly longestPauseMs?: number
  readonly longestOutageMs?: number
}

/** One schedule of calls and faults. */
export interface Schedule {
  readonly config: BudgetConfig
  readonly random: () => number
  readonly instances: number
  readonly lengthMs: number
  /** Calls a second that all instances together are asked for, by class. */
  readonly load: Readonly<Record<BudgetClass, number>>
  /** Users that ask besides, each in a rhythm of its own. */
  readonly users?: readonly SimulatedUser[]
  /** Without any, the network and the connections are good, too. */
  readonly faults?: Faults
  /** The calls swell and ebb: each takes up to this long. Without, they come evenly, at random times. */
  readonly waveMs?: number
  /** The user whom upstream answers with 429 all the time, one of six; without, it answers all with 200. */
  readonly limitedUser?: string
}

/** One who asks again and again. */
export interface SimulatedUser {
  readonly subject: string
  readonly budgetClass: BudgetClass
  /** The time between two of its turns on average (ms). */
  readonly everyMs: number
  /** How many calls it makes at once in each turn, of the same instance; 1. */
  readonly burst?: number
  /** When it begins (ms); at once. */
  readonly fromMs?: number
}

/** What happened. */
export interface Run {
  /** When calls reached upstream (ms), in order, and their class. */
  readonly arrivals: readonly Happening[]
  readonly refusals: readonly Happening[]
  /** When reports reached the ledger (ms). */
  readonly reports: readonly number[]
}

/** A call that happened, or did not. */
export interface Happening {
  readonly at: number
  readonly budgetClass: BudgetClass
  readonly subject: string
  /** Who was limited, of a refusal. */
  readonly limited?: Hold['limited']
}
