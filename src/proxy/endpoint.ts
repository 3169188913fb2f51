import { ID } from '../http/known-paths.ts'
import type { FieldError } from '../problem.ts'
import type { TokenNeed } from '../sessions/index.ts'
import type { Json } from './document-parts.ts'
import type { BodyName } from './upstream-bodies.ts'

/** The demands of each credential policy on the browser, and its additions to the request upstream (docs/upstream.md, Credentials). */
export const CREDENTIALS = {
  bearer: { session: true, bearer: true, appId: true },
  /** The body carries personal access tokens; it passes unread. */
  pat: { session: true, bearer: false, appId: true },
  none: { session: false, bearer: false, appId: false },
} as const

/** A rule for the query of an endpoint. */
export interface QueryRule {
  /** All faults of a query string; none when it is valid. */
  check(query: string): readonly FieldError[]
  /** The required parameters, as the OpenAPI document describes them. */
  readonly parameters: readonly Json[]
}

/** One proxied endpoint. Below /api it has the upstream's own path. */
export interface Endpoint {
  readonly method: 'GET' | 'POST' | 'PATCH'
  /** Path with `:parameters`; each is an {@link ID} unless {@link Endpoint.parameters} says otherwise. */
  readonly path: string
  readonly credential: keyof typeof CREDENTIALS
  readonly summary: string
  readonly parameters?: Readonly<Record<string, RegExp>>
  readonly query?: QueryRule
  /** The documented shape of the browser's body; any JSON object without it. */
  readonly request?: BodyName
  /** The documented shape of upstream's response, or one for each status. Without it the response may be anything. */
  readonly response?: BodyName | Readonly<Record<number, BodyName>>
  /**
   * The response is the same for all users, so upstream is asked once in HEALTH_SECONDS for all of them. Only for endpoints without a
   * credential.
   */
  readonly isShared?: true
}

/** Whether a call may change something. Then the browser's body goes upstream, and an Idempotency-Key counts. */
export function changesSomething({ method }: Endpoint): boolean {
  return method !== 'GET'
}

/** How good the access token of the session must be for a call. Only a GET is repeated, with another one. */
export function tokenNeedOf(endpoint: Endpoint): TokenNeed {
  if (!CREDENTIALS[endpoint.credential].bearer) return 'none'
  return changesSomething(endpoint) ? 'valid' : 'repeatable'
}

/** Builds the upstream path of an endpoint; undefined when a parameter does not match its pattern. */
export function pathBuilder(endpoint: Endpoint): (parameters: Readonly<Record<string, string>>) => string | undefined {
  const segments = endpoint.path.split('/').map((segment) => {
    if (!segment.startsWith(':')) return { literal: segment }
    const name = segment.slice(1)
    return { name, pattern: endpoint.parameters?.[name] ?? ID }
  })
  if (segments.every((segment) => segment.literal !== undefined)) return () => endpoint.path
  return (parameters) => {
    const parts: string[] = []
    for (const { literal, name, pattern } of segments) {
      const part = literal ?? parameters[name]
      if (part === undefined || pattern?.test(part) === false) return undefined
      parts.push(part)
    }
    return parts.join('/')
  }
}
