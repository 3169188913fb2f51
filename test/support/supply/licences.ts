/** Licences that allow use, change and sale and only want to be named (SPDX identifiers). */
const ALLOWED_LICENCES: ReadonlySet<string> = new Set([
  '0BSD',
  'Apache-2.0',
  'BlueOak-1.0.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'ISC',
  'MIT',
])

/**
 * Whether all obligations of a licence can be met.
 * @param expression an SPDX expression such as `MIT`, `(MIT OR GPL-2.0-only)`; nested ones count as forbidden
 */
export function isAllowed(expression: unknown): boolean {
  if (typeof expression !== 'string') return false
  const [, inner = ''] = /^\(?([^()]*)\)?$/.exec(expression) ?? []
  return inner.split(' OR ').some((choice) => choice.split(' AND ').every((id) => ALLOWED_LICENCES.has(id.trim())))
}
