import type { SettingProblem } from '../config/setting-rule.ts'
import { catalog } from './catalog.ts'

/** Finds a PARTNER_OVERVIEW_PATH that another GET of the catalog has: the two could not both be routed. */
export function overviewPathProblems(value: string): SettingProblem[] {
  const isTaken = catalog(undefined).some(({ method, path }) => method === 'GET' && path === value)
  return isTaken ? [{ setting: 'PARTNER_OVERVIEW_PATH', message: 'must not be the path of another endpoint' }] : []
}
