import type { Config } from '../config/config.ts'
import { catalog } from './catalog.ts'
import { takesKey } from './endpoint.ts'

/** Which items of REQUIRE_IDEMPOTENCY_KEY (1 for the first) name no call that takes a key, for example misspelt ones. */
export function unknownKeyPaths({ requiredFor }: Config['idempotency']): readonly number[] {
  if (requiredFor === 'all') return []
  const known = new Set(
    catalog(undefined)
      .filter(takesKey)
      .map(({ path }) => path),
  )
  return [...requiredFor].flatMap((path, index) => (known.has(path) ? [] : [index + 1]))
}
