import type { FieldError } from '../problem.ts'

/** What a credential policy asks of the browser, and what of ours it sends upstream (docs/upstream.md, Credentials). */
export const CREDENTIALS = {
  bearer: { session: true, bearer: true, appId: true },
  /** Personal tokens stand in the body, which is passed on unread. */
  pat: { session: true, bearer: false, appId: true },
  none: { session: false, bearer: false, appId: false },
} as const

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
  /** The session, bearer and app-id rule: {@link CREDENTIALS}. */
  readonly credential: keyof typeof CREDENTIALS
  readonly summary: string
  readonly parameters?: Readonly<Record<string, RegExp>>
  readonly query?: QueryRule
  /** A body is passed on as it comes, except with GET; with `none` it is dropped there too. */
  readonly body?: 'none'
  /** MAX_BODY_BYTES unless said. */
  readonly maxBodyBytes?: number
  /** Longest wait for the head of an answer; UPSTREAM_HEADERS_SECONDS unless said. */
  readonly timeoutMs?: number
  /** Its responses are the same for everybody, and asked for once in HEALTH_SECONDS. Only where no credential is sent. */
  readonly isShared?: true
}

/** Whether a body of the browser's is passed on. */
export function takesBody({ method, body }: Endpoint): boolean {
  return method !== 'GET' && body !== 'none'
}

/** What an id in a path may be (docs/reference.md, REST). */
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
