import { requiredFor } from '../config/idempotency.ts'
import { settingFormats } from '../config/setting-formats.ts'
import type { SettingProblem } from '../config/setting-rule.ts'
import { catalog } from './catalog.ts'
import { takesKey } from './endpoint.ts'

/**
 * Finds the items of REQUIRE_IDEMPOTENCY_KEY that name no call that takes a key: a misspelt path would leave the call that
 * it means unprotected. A value of the wrong format is not judged here.
 */
export function keyPathProblems(value: string): SettingProblem[] {
  const paths = settingFormats.apiPaths.test(value) ? requiredFor(value) : 'all'
  if (paths === 'all') return []
  const known = new Set(
    catalog(undefined)
      .filter(takesKey)
      .map(({ path }) => path),
  )
  const unknown = [...paths].flatMap((path, index) => (known.has(path) ? [] : [index + 1]))
  if (unknown.length === 0) return []
  const message = `must name paths of POST and PATCH calls as in /openapi.json, without /api. These items of the list do not: ${unknown.join(', ')}`
  return [{ setting: 'REQUIRE_IDEMPOTENCY_KEY', message }]
}
