/** The methods that metrics distinguish. Node accepts some thirty, so the others share a label. */
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])

/** The method of a request for metrics and audit lines; `other` for a rare one. */
export function methodLabel(method: string): string {
  return METHODS.has(method) ? method : 'other'
}
