import type { Config } from '../config/config.ts'
import { refusedName } from '../store/keys.ts'
import type { Store } from '../store/store.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { UpstreamBudget } from './budget/upstream-budget.ts'

/** Opens the budget of the settings. Without one, nothing of it is loaded. */
export async function openBudget(
  { upstream: { budget: config }, secrets }: Pick<Config, 'upstream' | 'secrets'>,
  store: Pick<Store, 'openLedger' | 'openRefusals'>,
  { registry }: Metrics,
): Promise<UpstreamBudget | undefined> {
  if (config === undefined) return undefined
  const { UpstreamBudget } = await import('./budget/upstream-budget.ts')
  const { createBudgetMetrics } = await import('../telemetry/budget-metrics.ts')
  const budget = await UpstreamBudget.open(config, store, (user) => refusedName(user, secrets.current[0] ?? ''))
  createBudgetMetrics(registry, budget)
  return budget
}
