import { problemOf } from '../core/api/call.ts'
import { ApiError, type ActiveSession, type Notice, type Problem } from '../core/client.ts'
import { SESSION_PATH } from '../core/server.ts'
import type { SessionBody } from '../core/session/session-state.ts'

/** A `Request` of the Fetch API, one of Node.js, or anything else with their headers. */
export interface RequestHeaders {
  readonly headers: Pick<Headers, 'get'> | Readonly<Record<string, string | readonly string[] | undefined>>
}

/** Options of {@link sessionFor}. */
export interface SessionForOptions {
  /**
   * The origin of the server, e.g. `https://bff.example.com`, or its inside address. It comes from your settings and never from
   * the request: whoever chooses it gets the cookie of the user.
   */
  readonly baseUrl: string
}

/** What is expected of the body of GET /auth/session. Without a session it lacks the most. */
type Body = Omit<Extract<SessionBody, { authenticated: true }>, 'authenticated'> & {
  readonly authenticated?: boolean
  readonly session: string
}

/** A session as the page will know it, with times that are comparable with `Date.now()` of the rendering server. */
export interface RenderedSession extends Omit<ActiveSession, 'expiring'> {
  readonly notice?: Notice | undefined
}

/**
 * The session of the user for whom a server renders a page. Nothing but the session cookie is sent, and it does not count as use
 * of the session. Keep neither the result nor the page in a cache that another request can read.
 * ```ts
 * const session = await sessionFor(request, { baseUrl: settings.bffUrl })
 * ```
 * @returns null if nobody is logged in; undefined if this request cannot tell, because it comes from another site: browsers then
 * withhold the cookie, also when the user returns from the login. Render the page without the user, and leave it to its client; a
 * redirect to the login would loop
 * @throws ApiError if the server does not say within 2 seconds: the user may be logged in; TypeError if `baseUrl` is no address with
 * its scheme
 */
export async function sessionFor(
  { headers }: RequestHeaders,
  { baseUrl }: SessionForOptions,
): Promise<RenderedSession | null | undefined> {
  const url = new URL(SESSION_PATH, baseUrl)
  // A header may be a list, as in `headersDistinct` of Node.js.
  const header = (name: string): string =>
    [typeof headers.get === 'function' ? headers.get(name) : (headers as Record<string, string>)[name]].flat().join(';')
  // Not trim(): a sibling host may set a cookie whose name begins with another kind of space.
  const named = header('cookie')
    .split(';')
    .flatMap((pair) => /^[ \t]*((__Host-)?session=.*)/s.exec(pair)?.[1] ?? [])
  const secure = named.filter((pair) => pair.startsWith('_'))
  // Only a server at a loopback name may have DEV_INSECURE_COOKIES, and with it the other name.
  const [cookie, second] = secure[0] || !/localhost$|^127\.|^\[::1]/.test(url.hostname) ? secure : named
  if (!cookie) return header('sec-fetch-site') === 'cross-site' ? undefined : null
  // The server takes a request with two for one without a session, and has made no cookie with other characters.
  if (second || !/^[!-~]+[ \t]*$/.test(cookie)) return null
  let response: Response | undefined
  let problem: Problem | undefined
  let cause: unknown
  try {
    // A page waits for the answer.
    const signal = AbortSignal.timeout(2000)
    response = await fetch(url, { headers: { cookie }, redirect: 'manual', cache: 'no-store', signal })
    if (response.ok) {
      const { authenticated, now, expires_at, idle_expires_at, orders_paused, ...told } =
        (await response.json()) as Body
      if (authenticated === false) return null
      const at = (seconds: number): number => Date.now() + (seconds - now) * 1000
      // NaN unless all three are there.
      if (now + expires_at + idle_expires_at < Infinity)
        return {
          ...told,
          status: 'active',
          expiresAt: at(expires_at),
          idleExpiresAt: at(idle_expires_at),
          ordersPaused: orders_paused,
        }
    } else problem = await problemOf(response)
  } catch (error) {
    cause = error
  }
  throw new ApiError('GET', SESSION_PATH, response, problem, cause)
}
