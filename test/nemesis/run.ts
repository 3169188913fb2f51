import { setTimeout as pause } from 'node:timers/promises'
import type { Test } from 'tap'
import { randomFrom } from '../../sandbox/upstream/market.ts'
import { ALL_FAULTS } from './faults/all.ts'
import { auditsIn, startBy } from './audits.ts'
import { startFleet, type Fleet } from './fleet.ts'
import type { FaultPeriod, History } from './history.ts'
import { Observer } from './observer.ts'
import { actAsOperator } from './operators/operator.ts'
import type { Plan, PlannedFault } from './plan.ts'
import type { ProductPromise, Violation } from './promise.ts'
import { ALL_PROMISES } from './promises/all.ts'
import { takeSamples } from './samples.ts'
import { processesOf, settled } from './settled.ts'
import { actAsBuyer } from './users/buyer.ts'
import { actAsPage } from './users/package-page.ts'
import { actAsUser } from './users/user.ts'

/** The share of a run in which something may wait for a processor before the run says nothing about what takes time. */
const MOST_WAITING = 0.05

/** How often a run is judged. It ends a while after the first violation. */
const JUDGED_EVERY_MS = 2000

/** A promise that was not kept, and how that was seen. */
export interface Broken {
  readonly promise: ProductPromise
  readonly violation: Violation
}

/** What a run has found. */
export interface Result {
  readonly plan: Plan
  readonly history: History
  readonly violations: readonly Broken[]
  /** What would be one if the run were not void. */
  readonly doubtful: readonly Broken[]
  /** When each promise was put to the test. */
  readonly judged: ReadonlyMap<ProductPromise, readonly number[]>
  /** The share of the run in which the harness and each instance waited for a processor. */
  readonly waits: ReadonlyMap<string, number>
  /** Whether any of them waited for too long, so that the run says nothing about what takes time. */
  readonly isVoid: boolean
  /** What each instance has logged, by its name. */
  readonly logs: ReadonlyMap<string, string>
  /** The time of day at the start of the observer's clock (ms since 1970). */
  readonly startedAt: number
}

/** Runs a plan. All that it starts ends with the test. @param checkout the folder of the product, unless it is this repository */
export async function run(t: Test, plan: Plan, checkout?: string): Promise<Result> {
  const observer = new Observer()
  const fleet = await startFleet(t, plan.fleet, observer, checkout)
  const atStart = await processesOf(fleet)
  const over = new AbortController()
  const acts = [
    ...plan.users.map((user) => actAsUser(user, fleet, over.signal)),
    ...plan.pages.map((page) => actAsPage(page, fleet, over.signal)),
    ...(plan.buyers ?? []).map((buyer) => actAsBuyer(buyer, fleet, over.signal)),
    ...plan.operators.map((operator) => actAsOperator(operator, fleet, over.signal)),
  ]
  const faults = plan.faults.map((fault) => applyLater(fleet, fault, over.signal))
  await Promise.all([...acts, ...faults, takeSamples(fleet, over.signal), lasts(plan.forMs, observer, over)]).finally(
    () => over.abort(),
  )
  const { history, waits, startedAt } = observer
  const isVoid = isVoidBy(waits)
  if (violationsOf(history, isVoid).length === 0) history.leftovers.push(await settled(fleet, atStart))
  const logs = new Map(fleet.instances.map(({ name, log }) => [name, log()]))
  history.audits.push(...[...logs.values()].flatMap((log, at) => auditsIn(log, startBy(plan.fleet, at, startedAt))))
  return {
    plan,
    history,
    waits,
    isVoid,
    startedAt,
    violations: violationsOf(history, isVoid),
    doubtful: isVoid ? violationsOf(history, false).filter(({ promise }) => promise.isTimed) : [],
    judged: new Map(ALL_PROMISES.map((promise) => [promise, promise.check(history).judged])),
    logs,
  }
}

function isVoidBy(waits: Observer['waits']): boolean {
  return Math.max(...waits.values()) > MOST_WAITING
}

function violationsOf(history: History, isVoid: boolean): Broken[] {
  const promises = ALL_PROMISES.filter(({ isTimed }) => !isTimed || !isVoid)
  return promises.flatMap((promise) => promise.check(history).violations.map((violation) => ({ promise, violation })))
}

/** Ends a run at its time, or when a promise is broken and what comes after that was seen, too. */
async function lasts(forMs: number, observer: Observer, over: AbortController): Promise<void> {
  const { now, history } = observer
  const endsAt = now() + forMs
  let isBroken = false
  while (now() < endsAt && !isBroken) {
    isBroken = violationsOf(history, isVoidBy(observer.waits)).length > 0
    await pause(Math.max(0, Math.min(JUDGED_EVERY_MS, endsAt - now())))
  }
  over.abort()
}

async function applyLater(fleet: Fleet, { name, at, forMs, seed }: PlannedFault, over: AbortSignal): Promise<void> {
  const fault = ALL_FAULTS.find((each) => each.name === name)
  if (fault === undefined) throw new Error(`there is no fault ${name}`)
  await waited(at, over)
  if (over.aborted) return
  const { now, history } = fleet.observer
  const from = now()
  const { note, touches, settleMs, heal } = await fault.apply(fleet, randomFrom(seed))
  const period: FaultPeriod = { name, note, from, to: undefined, settleMs, touches }
  history.faults.push(period)
  await waited(forMs, over)
  await heal()
  period.to = now()
}

/** Waits, but not longer than a run. */
async function waited(ms: number, over: AbortSignal): Promise<void> {
  await pause(ms, undefined, { signal: over }).catch(() => undefined)
}
