import type { Registry } from 'prom-client'
import { BUDGET_CLASSES, type BudgetClass, type ByClass } from '../config/upstream-budget.ts'
import { scrapedCounter, scrapedGauge } from './scraped-metrics.ts'

/** What a scrape reads of a budget. */
interface BudgetSource {
  readonly counts: {
    readonly granted: Readonly<Record<BudgetClass, number>>
    readonly refused: Readonly<Record<BudgetClass, number>>
    readonly limited: Readonly<Record<BudgetClass, number>>
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
  scrapedCounter(
    registry,
    'bff_upstream_budget_calls_total',
    'Calls that the upstream budget granted or refused. A granted call may still fail before it is sent; if that is because ' +
      'its token has expired or upstream refuses its class meanwhile, it counts as refused too. Calls that wait because ' +
      'upstream limits their user are not among them',
    ['class', 'outcome'],
    () =>
      BUDGET_CLASSES.flatMap((each) => [
        [{ class: each, outcome: 'granted' }, budget.counts.granted[each]] as const,
        [{ class: each, outcome: 'refused' }, budget.counts.refused[each]] as const,
      ]),
  )
  scrapedCounter(
    registry,
    'bff_upstream_budget_alone_calls_total',
    'Calls that were granted from the part set aside, because Redis could not be reached or had just come back',
    [],
    () => budget.counts.alone,
  )
  const byWindow = (name: string, help: string, read: 'calls' | 'limit') =>
    scrapedGauge(
      registry,
      name,
      help,
      () =>
        budget.left().flatMap(({ windowMs, ...window }) => {
          const value = window[read]
          return value === undefined ? [] : [[{ window: String(windowMs / 1000) }, value] as const]
        }),
      'min',
      ['window'],
    )
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
  byClass(registry, budget)
}

/** Registers what is known of each class. */
function byClass(registry: Registry, budget: BudgetSource): void {
  scrapedGauge(
    registry,
    'bff_upstream_budget_leased',
    'Calls that the process may still make with the tokens that it holds. bff_upstream_budget_left counts them as used: all ' +
      'processes may still send what that says plus the sum of these',
    () => BUDGET_CLASSES.map((each) => [{ class: each }, budget.leased(each)] as const),
    'sum',
    ['class'],
  )
  scrapedGauge(
    registry,
    'bff_upstream_budget_alone',
    '1 while the process cannot reach the budget in Redis',
    () => Number(budget.isAlone),
    'max',
  )
  createLimitMetrics(registry, budget)
}

/** Registers the metrics of the calls that upstream's own 429s hold back. */
function createLimitMetrics(registry: Registry, budget: BudgetSource): void {
  scrapedCounter(
    registry,
    'bff_upstream_limit_refusals_total',
    'Calls that were not sent because upstream limits their user (upstream_limit)',
    ['class'],
    () => BUDGET_CLASSES.map((each) => [{ class: each }, budget.counts.limited[each]] as const),
  )
  scrapedGauge(
    registry,
    'bff_upstream_limited_users',
    'Users, else sessions, whose calls of the class wait because upstream answered 429 to them, on all instances; take the max',
    () => BUDGET_CLASSES.map((each) => [{ class: each }, budget.usersHeldBack[each]] as const),
    'max',
    ['class'],
  )
  scrapedGauge(
    registry,
    'bff_upstream_budget_held_back',
    '1 while all calls of the class wait because upstream answered 429 to several users, and to the probe of another',
    () => BUDGET_CLASSES.map((each) => [{ class: each }, Number(budget.isHeldBack(each))] as const),
    'max',
    ['class'],
  )
}
