import type { ApiError, Client } from '../core/client.ts'
import { leave, type LogoutOptions, type SessionOfServer } from '../core/session/session.ts'
import { SKEW_MS } from '../core/session/session-times.ts'

/** A session of the user. All times are in milliseconds since 1970 by the clock of the user, comparable with `Date.now()`. */
export interface OwnSession {
  /** Tells this session from every other: that of the browser which has it is the `session` of `client.session.get()`. */
  readonly tag: string
  /** It is the session of this page. */
  readonly isCurrent: boolean
  /** When the user logged in. */
  readonly startedAt: number
  /** When the session was last used, up to a minute early. */
  readonly lastUsedAt?: number | undefined
  /** The browser and the system of the login, such as `Firefox on Windows`, as far as they are known. A thief can choose it. */
  readonly device?: string | undefined
}

/** Options of {@link listSessions} and {@link endSession}. */
export interface OwnSessionsOptions {
  /** Stops waiting for the server. */
  readonly signal?: AbortSignal | undefined
}

/** A session in the body of GET /auth/sessions; times are seconds of the server's clock. */
interface Listed {
  readonly tag: string
  readonly current: boolean
  readonly started_at: number
  readonly last_used_at?: number
  readonly device?: string
}

/**
 * Where the user is logged in: the newest 100 sessions, the newest first, as they were a few seconds ago. Asking does not count as
 * use of the session. The server allows ten questions a minute, so ask when you show the list.
 * ```ts
 * for (const { tag, device, startedAt, isCurrent } of await listSessions(client)) show(tag, device, startedAt, isCurrent)
 * ```
 * @throws ApiError, with the problem `subject_unknown` where the server does not know whose session it is; the reason of `signal`
 * when you abort
 */
export async function listSessions(
  client: Pick<Client, 'session'>,
  { signal }: OwnSessionsOptions = {},
): Promise<readonly OwnSession[]> {
  const response = await ask(client, '/auth/sessions', { method: 'GET', signal })
  const { sessions, now } = (await response.json()) as { sessions: readonly Listed[]; now: number }
  const aheadMs = Date.now() - now * 1000
  // The time of the server is in whole seconds, so a small difference says nothing.
  const time = (seconds: number): number => seconds * 1000 + (Math.abs(aheadMs) < SKEW_MS ? 0 : aheadMs)
  return sessions.map(({ tag, current, started_at, last_used_at, device }) => ({
    tag,
    isCurrent: current,
    startedAt: time(started_at),
    lastUsedAt: last_used_at && time(last_used_at),
    device,
  }))
}

/**
 * Logs the user out in another browser: ends the session with this tag, and closes its sockets. Resolves too if it has ended
 * meanwhile.
 * @throws ApiError when it may go on: say so, and offer it again. With the problem `current_session` it is the session of this
 * page, which `client.logout()` ends
 */
export async function endSession(
  client: Pick<Client, 'session'>,
  tag: string,
  { signal }: OwnSessionsOptions = {},
): Promise<void> {
  try {
    await ask(client, '/auth/sessions/' + encodeURIComponent(tag), { method: 'DELETE', signal })
  } catch (error) {
    if ((error as Partial<ApiError>).problem?.code !== 'not_found') throw error
  }
}

/**
 * Logs out as `client.logout()` does, and tells where the user logs out at the provider, too, on servers with OpenID Connect.
 * ```ts
 * location.assign((await logOutAtProvider(client)) ?? '/')
 * ```
 * @returns the address to which the page must go; undefined where the provider has none
 * @throws ApiError as `client.logout()` does
 */
export async function logOutAtProvider(
  client: Pick<Client, 'session'>,
  options?: LogoutOptions,
): Promise<string | undefined> {
  const response = await leave(
    client.session as SessionOfServer,
    `?provider=true${options?.everywhere ? '&everywhere=true' : ''}`,
  )
  // A server whose provider has no such address responds 204.
  return response.status === 200 ? ((await response.json()) as { logout_url: string }).logout_url : undefined
}

async function ask(client: Pick<Client, 'session'>, ...request: Parameters<SessionOfServer['ask']>): Promise<Response> {
  try {
    return await (client.session as SessionOfServer).ask(...request)
  } catch (error) {
    // The page hears that its session has ended, unless a login in another tab has replaced it.
    if ((error as Partial<ApiError>).status === 401) await (client.session as SessionOfServer).confirm()
    throw error
  }
}
