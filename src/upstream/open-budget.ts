import type { Config } from '../config/config.ts'
import { refusedName } from '../store/keys.ts'
import type { Store } from '../store/store.ts'
import { createBudgetMetrics } from '../telemetry/budget-metrics.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { UpstreamBudget } from './budget/upstream-budget.ts'

/** Opens the budget of the settings, if they have one. */
export async function openBudget(
  { upstream: { budget: config }, secrets: [secret = ''] }: Pick<Config, 'upstream' | 'secrets'>,
  store: Store,
  { registry }: Metrics,
): Promise<UpstreamBudget | undefined> {
  if (config === undefined) return undefined
  const budget = await UpstreamBudget.open(config, store, (user) => refusedName(user, secret))
  createBudgetMetrics(registry, budget)
  return budget
}
