/** The headers by which a page knows a problem of the server, besides its body. */
export const PROBLEM = { 'content-type': 'application/problem+json', 'x-request-id': 'own' }

/** The body of a problem of the server. */
export function problemBody(code: string, more: object = {}): string {
  return JSON.stringify({ type: `/problems/${code}`, code, ...more })
}
