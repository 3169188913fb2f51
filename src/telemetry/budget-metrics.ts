import type { Registry } from 'prom-client'
import { BUDGET_CLASSES, type BudgetClass, type ByClass } from '../config/upstream-budget.ts'
import { Instruments } from './instruments.ts'

interface BudgetSource {
  readonly counts: {
    readonly granted: ByClass
    readonly refused: ByClass
    readonly limited: ByClass
    readonly alone: number
  }
  readonly isAlone: boolean
  left(): readonly { readonly windowMs: number; readonly calls: number | undefined; readonly limit: number }[]
  leased(budgetClass: BudgetClass): number
  isHeldBack(budgetClass: BudgetClass): boolean
  readonly usersHeldBack: ByClass
}

/** Registers the metrics of the upstream budget. Without UPSTREAM_BUDGET they do not exist. */
export function createBudgetMetrics(registry: Registry, budget: BudgetSource): void {
  const make = new Instruments(registry)
  createCounters(make, budget)
  const byWindow = (name: string, help: string, read: 'calls' | 'limit'): void => {
    const values = () =>
      budget.left().flatMap(({ windowMs, ...window }) => {
        const value = window[read]
        return value === undefined ? [] : [[{ window: String(windowMs / 1000) }, value] as const]
      })
    make.scrapedGauge(name, help, values, 'min', ['window'])
  }
  byWindow(
    'bff_upstream_budget_left',
    'Calls left for orders that no process has leased, in the window of so many seconds, when the process last heard of it; ' +
      'take the min. No value while the process cannot reach the budget in Redis',
    'calls',
  )
  byWindow(
    'bff_upstream_budget_limit',
    'Calls that all instances together may make in the window, without the part set aside; take the max',
    'limit',
  )
  make.scrapedGauge(
    'bff_upstream_budget_leased',
    'Calls that the process may still make with the tokens that it holds. bff_upstream_budget_left counts them as used: all ' +
      'processes may still send what that says plus the sum of these',
    () => byClass((each) => budget.leased(each)),
    'sum',
    ['class'],
  )
  make.scrapedGauge(
    'bff_upstream_budget_alone',
    '1 while the process cannot reach the budget in Redis',
    () => Number(budget.isAlone),
    'max',
  )
  make.scrapedGauge(
    'bff_upstream_limited_users',
    'Users, else sessions, whose calls of the class wait because upstream answered 429 to them, on all instances; take the max',
    () => byClass((each) => budget.usersHeldBack[each]),
    'max',
    ['class'],
  )
  make.scrapedGauge(
    'bff_upstream_budget_held_back',
    '1 while all calls of the class wait because upstream answered 429 to several users, and to the probe of another',
    () => byClass((each) => Number(budget.isHeldBack(each))),
    'max',
    ['class'],
  )
}

function createCounters(make: Instruments, { counts }: BudgetSource): void {
  make.scrapedCounter(
    'bff_upstream_budget_calls_total',
    'Calls that the upstream budget granted or refused. A granted call may still fail before it is sent; if that is because ' +
      'its token has expired or upstream refuses its class meanwhile, it counts as refused too. Calls that wait because ' +
      'upstream limits their user are not among them',
    () => [
      ...byClass((each) => counts.granted[each], { outcome: 'granted' }),
      ...byClass((each) => counts.refused[each], { outcome: 'refused' }),
    ],
    ['class', 'outcome'],
  )
  make.scrapedCounter(
    'bff_upstream_budget_alone_calls_total',
    'Calls that were granted from the part set aside, because Redis could not be reached or had just come back',
    () => counts.alone,
  )
  make.scrapedCounter(
    'bff_upstream_limit_refusals_total',
    'Calls that were not sent because upstream limits their user (upstream_limit)',
    () => byClass((each) => counts.limited[each]),
    ['class'],
  )
}

function byClass(read: (budgetClass: BudgetClass) => number, labels: Record<string, string> = {}) {
  return BUDGET_CLASSES.map((each) => [{ class: each, ...labels }, read(each)] as const)
}
