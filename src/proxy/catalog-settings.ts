import { formats } from '../config/setting-formats.ts'
import { problemsWhere, type SettingProblem } from '../config/setting-rule.ts'
import { catalog } from './catalog.ts'
import { changesSomething } from './endpoint.ts'

/** Finds the problems of the settings that name paths of the catalog. */
export function catalogProblems(raw: Readonly<Record<string, string | undefined>>): SettingProblem[] {
  const { REQUIRE_IDEMPOTENCY_KEY: keyPaths = '', PARTNER_OVERVIEW_PATH: overviewPath } = raw
  const unknown = unknownKeyPaths(keyPaths)
  return problemsWhere([
    [
      'REQUIRE_IDEMPOTENCY_KEY',
      unknown.length > 0,
      `must name paths of POST and PATCH calls as in /openapi.json, without /api. These items of the list do not: ${unknown.join(', ')}`,
    ],
    [
      'PARTNER_OVERVIEW_PATH',
      // The two could not both be routed.
      catalog(undefined).some(({ method, path }) => method === 'GET' && path === overviewPath),
      'must not be the path of another endpoint',
    ],
  ])
}

/**
 * Returns which items of the list, counted from 1, name no call that takes a key: a misspelt path would leave the call that
 * it means unprotected. A value of the wrong format is not judged here.
 */
function unknownKeyPaths(value: string): number[] {
  const paths = formats.apiPaths.parse(value)
  if (paths === undefined || paths === 'all') return []
  const endpoints = catalog(undefined).filter(changesSomething)
  const known = new Set(endpoints.map(({ path }) => path))
  return [...paths].flatMap((path, index) => (known.has(path) ? [] : [index + 1]))
}
