import { formats } from './setting-formats.ts'
import {
  optional,
  problemsWhere,
  required,
  seconds,
  whole,
  withDefault,
  type SettingProblem,
  type ValuesOf,
} from './setting-rule.ts'
import { callsShared, type BudgetConfig, type BudgetWindow } from './upstream-budget.ts'

const DAY = 86_400

/** The settings of the upstream REST API. */
export const upstreamSettings = {
  apiUrl: required('API_URL', formats.httpBase, 'https').means('Base address of the upstream REST API'),
  appId: optional('SERVICE_APP_ID', formats.printable).means(
    'Application id sent upstream in APP_ID_HEADER (default: CLIENT_ID)',
  ),
  appIdHeader: withDefault('APP_ID_HEADER', 'Service-App-ID', formats.headerName).means(
    'Header that carries the application id upstream',
  ),
  partnerOverviewPath: optional('PARTNER_OVERVIEW_PATH', formats.path).means(
    'Upstream path of the partner overview; not routed when unset',
  ),
  healthMs: seconds('HEALTH_SECONDS', 10, [1, 3600]).means(
    'Shortest interval between upstream health requests of all instances',
  ),
  connectMs: seconds('UPSTREAM_CONNECT_SECONDS', 3, [1, 600]).means('Upstream connect timeout'),
  maxConnectionMs: seconds('UPSTREAM_MAX_CONNECTION_SECONDS', 60, [1, DAY]).means(
    'How long a connection to the REST API may be reused',
  ),
  headersMs: seconds('UPSTREAM_HEADERS_SECONDS', 15, [1, 600]).means('Upstream response-header timeout'),
  bodyMs: seconds('UPSTREAM_BODY_SECONDS', 30, [1, 600]).means('Upstream body idle timeout'),
}

/** The settings of the upstream budget. */
export const budgetSettings = {
  windows: optional('UPSTREAM_BUDGET', formats.budget).means(
    'Calls of the REST API that upstream allows one address, as calls/seconds, for several windows; all instances together never make more. Empty = no limit',
  ),
  name: withDefault('UPSTREAM_BUDGET_NAME', 'default', formats.budgetName).means(
    'Instances with the same name and the same Redis share a budget; give each egress address its own',
  ),
  shares: withDefault('UPSTREAM_BUDGET_SHARES', '100,80,50', formats.budgetShares).means(
    'Percent of the budget up to which orders, one-time URLs and reads are admitted',
  ),
  alone: withDefault('UPSTREAM_BUDGET_ALONE', '0.1', formats.fraction).means(
    'Part of the budget that is set aside for instances that cannot reach Redis',
  ),
  instances: whole('UPSTREAM_BUDGET_INSTANCES', 3, [1, 1000]).means(
    'Processes that share the part set aside; each worker counts',
  ),
}

type BudgetValues = ValuesOf<typeof budgetSettings>

/** Completes the settings of the upstream REST API. */
export function upstreamConfig(
  upstream: ValuesOf<typeof upstreamSettings>,
  budget: BudgetValues,
  { clientId, hasRedis }: { readonly clientId: string; readonly hasRedis: boolean },
) {
  return { ...upstream, appId: upstream.appId ?? clientId, budget: budgetConfig(budget, hasRedis) }
}

/** Undefined where there is no budget. */
function budgetConfig(budget: BudgetValues, hasRedis: boolean): BudgetConfig | undefined {
  const { windows } = budget
  if (windows === undefined) return undefined
  return {
    ...budget,
    windows: windows.toSorted((one, other) => one.windowMs - other.windowMs),
    // A process whose store is its own memory is never without it.
    alone: hasRedis ? budget.alone : 0,
  }
}

/** A class without a single call in a window could never make one, and a window that never binds is a mistake. */
export function budgetChecks({ windows = [], shares, alone = 0 }: Partial<BudgetValues>): SettingProblem[] {
  const idle = windowsWithoutEffect(windows)
  const { reads = 1 } = shares ?? {}
  return problemsWhere([
    [
      'UPSTREAM_BUDGET',
      idle.length > 0,
      `must not have window ${idle.join(', ')} of its list: another window is always the tighter one`,
    ],
    [
      'UPSTREAM_BUDGET',
      windows.some((window) => Math.floor(callsShared(window, { alone }) * reads) < 1),
      'is too small: less than one call of a window is left for reads (UPSTREAM_BUDGET_SHARES, UPSTREAM_BUDGET_ALONE)',
    ],
  ])
}

/**
 * Returns which windows, counted from 1 in the order of the setting, can never be the tighter one because another window never
 * lets more calls through within their length. A sliding window of 60 s lets its calls through twice within 90 s: at the
 * beginning and at the end.
 */
function windowsWithoutEffect(windows: readonly BudgetWindow[]): number[] {
  return windows.flatMap((window, index) => {
    const bounds = (other: BudgetWindow): boolean =>
      other !== window && other.calls * Math.ceil(window.windowMs / other.windowMs) <= window.calls
    return windows.some(bounds) ? index + 1 : []
  })
}
