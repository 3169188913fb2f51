import type { FieldError } from '../problem.ts'

/** What is sent upstream to prove who asks (CONTRACT: REST). */
type CredentialPolicy = 'bearer' | 'pat' | 'none'

/** One required query parameter, as OpenAPI describes it. */
interface QueryParameter {
  readonly name: string
  readonly description: string
  readonly format: 'date'
}

/** What the query of an endpoint must be, where the catalog says so. */
export interface QueryRule {
  /** Every fault of a query string at once, none when it may pass. */
  check(query: string): readonly FieldError[]
  /** Its required parameters, for the OpenAPI document. */
  readonly parameters: readonly QueryParameter[]
}

/** One proxied endpoint. Below /api its path is the upstream's own. */
export interface Endpoint {
  readonly method: 'GET' | 'POST' | 'PATCH'
  /** Path with `:parameters`; each is one id unless {@link Endpoint.parameters} says otherwise. */
  readonly path: string
  readonly credential: CredentialPolicy
  readonly summary: string
  readonly parameters?: Readonly<Record<string, RegExp>>
  readonly query?: QueryRule
  /** Answers may be given to several browsers for this long. Only where no credential is sent. */
  readonly sharedForMs?: number
}

/** What an id in a path may be (CONTRACT: REST). */
export const ID = /^[A-Za-z0-9_-]{1,64}$/

/** Builds the upstream path of an endpoint from checked parameters; undefined when one is not as it must be. */
export function pathBuilder(
  endpoint: Endpoint,
): (parameters: Readonly<Record<string, string>>) => string | undefined {
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
