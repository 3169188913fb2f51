import { ATTRIBUTION_PARAMETERS } from '../../sandbox/provider/attribution.ts'

/** The values of a partner among parameters, as a query in a fixed order; '' without any. */
export function attributionOf(params: Readonly<Record<string, string>>): string {
  const values = ATTRIBUTION_PARAMETERS.flatMap((name) => {
    const value = params[name]
    return value === undefined ? [] : [[name, value] as const]
  })
  return new URLSearchParams(Object.fromEntries(values)).toString()
}
