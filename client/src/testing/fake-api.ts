import type { ProblemCode } from '../core/client.ts'
import { parseJson } from '../core/base/json.ts'

/** A call that has reached the trading service. */
export interface FakeCall {
  readonly method: string
  /** The path of the trading service with its query, without `/api`. */
  readonly path: string
  readonly headers: Headers
  /** The body, if it is JSON. */
  readonly json: unknown
}

/**
 * The JSON of a response with the status 200, any other `Response`, or a function that is asked each time. With
 * `Response.error()` the response is lost on its way.
 */
export type FakeAnswer<Body> = Body | Response | ((call: FakeCall) => Body | Response | Promise<Body | Response>)

/**
 * An error of the server.
 * ```ts
 * client.server.respond('POST', '/payment-agents/v1/transfer', problem(504, 'outcome_unknown', { outcome: 'unknown' }))
 * ```
 * @param more other members of the body, or `retryAfter`, in seconds
 */
export function problem(
  status: number,
  code: ProblemCode,
  { retryAfter, ...more }: { readonly retryAfter?: number } & Readonly<Record<string, unknown>> = {},
): Response {
  const body = { type: `/problems/${code}`, title: code, status, detail: code, code, request_id: 'fake', ...more }
  const headers = new Headers({ 'content-type': 'application/problem+json', 'x-request-id': 'fake' })
  if (retryAfter !== undefined) headers.set('retry-after', String(retryAfter))
  return new Response(JSON.stringify(body), { status, headers })
}

/** The API and the session routes: what a test has said comes before what the server does by itself. */
export class FakeApi {
  readonly calls: FakeCall[] = []
  readonly #answers = new Map<string, FakeAnswer<unknown>>()

  respond(method: string, path: string, answer: FakeAnswer<unknown>): void {
    this.#answers.set(`${method} ${path}`, answer)
  }

  /**
   * The response to a request.
   * @param own the response that the server gives by itself, undefined for none
   * @returns a response of the type `error` if it is lost
   */
  async handle(
    path: string,
    query: string,
    init: RequestInit,
    own: (request: string) => Response | undefined,
  ): Promise<Response> {
    const { method = 'GET' } = init
    const isApi = path.startsWith('/api/')
    const route = isApi ? path.slice('/api'.length) : path
    const full = query === '' ? route : `${route}?${query}`
    const call = { method, path: full, headers: new Headers(init.headers), json: jsonOf(init.body) }
    const request = `${method} ${route}`
    const found = this.#answers.get(`${method} ${full}`) ?? this.#answers.get(request)
    // Whatever a test has said of the API, the server refuses calls that need a session first.
    const first = isApi || found === undefined ? own(request) : undefined
    if (first) return first
    if (isApi) this.calls.push(call)
    if (found === undefined) {
      return problem(404, 'not_found', { detail: `the test has not called server.respond('${method}', '${route}', …)` })
    }
    const answer: unknown = typeof found === 'function' ? await (found as (call: FakeCall) => unknown)(call) : found
    if (!(answer instanceof Response)) return Response.json(answer)
    return answer.type === 'error' ? answer : answer.clone()
  }
}

function jsonOf(body: RequestInit['body']): unknown {
  try {
    return typeof body === 'string' ? parseJson(body) : undefined
  } catch {
    return undefined
  }
}
