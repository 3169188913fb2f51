import type { ApiError } from '../base/errors.ts'
import type { Core } from '../core.ts'
import { SESSION_PATH } from '../server.ts'
import { loginUrl, takeAuthError, type AuthError, type Flow, type LoginOptions } from './login.ts'
import { sessionKey } from './session-state.ts'
import type { SessionStore } from './session-store.ts'

/** Options of `logout()`. */
export interface LogoutOptions {
  /** Also ends the user's sessions in other browsers and on other devices. */
  readonly everywhere?: boolean | undefined
}

/** The session of the user, the same in all tabs. */
export interface Session extends Omit<SessionStore, 'confirm' | 'end'> {
  /**
   * Reports that the user is present, which moves `idleExpiresAt`. It does not move `expiresAt`.
   * @throws ApiError with the status 401 if the session has ended
   */
  extend(): Promise<void>
  /**
   * Logs out in all tabs and on all instances of the server, and with `everywhere` in all other browsers of the user.
   * @throws ApiError when the user is still logged in, or may be: say so, and offer the logout again. With the problem
   * `subject_unknown`, this session has ended, but sessions elsewhere may go on.
   */
  readonly logout: (options?: LogoutOptions) => Promise<void>
  /**
   * The address of the login or the sign-up, for a link or a navigation. `fetch` cannot use it.
   * @param flow `login` by default
   */
  loginUrl(flow?: Flow, options?: LoginOptions): string
  /**
   * Why the last login failed; undefined if it did not. Call it once, when the page loads: it removes the code from the
   * address of the page.
   */
  takeAuthError(): AuthError | undefined
}

/** What other entries of the package find in a {@link Session}, also those of a newer server. No page needs it. */
export interface SessionOfServer extends Session, Pick<SessionStore, 'confirm' | 'end'>, Pick<Core, 'ask'> {}

/** Logs out with this query. @throws ApiError as `logout` does */
export async function leave(
  { ask, get, check, end }: Pick<SessionOfServer, 'ask' | 'get' | 'check' | 'end'>,
  query: string,
): Promise<Response> {
  const before = sessionKey(get())
  const response = ask(`/auth/logout${query}`)
  const { ok, problem }: Partial<Response & ApiError> = await response.catch((error: ApiError) => error)
  // With that code, only the sessions elsewhere could not be found.
  if (ok || problem?.code === 'subject_unknown') {
    // The answer may be late, of a page that was away: another session may have begun, and may be being asked for.
    if (before && before === sessionKey(get())) end('logout')
    else await check()
  }
  return response
}

/** Adds to the store of a client what a page can do with its session. */
export function sessionOf({ server, store, ask }: Core): SessionOfServer {
  return {
    ...store,
    ask,
    async extend() {
      try {
        await ask(SESSION_PATH)
      } catch (error) {
        if ((error as ApiError).status === 401) await store.confirm()
        throw error
      }
      await store.check()
    },
    async logout(options) {
      await leave({ ...store, ask }, options?.everywhere ? '?everywhere=true' : '')
    },
    loginUrl: (flow, init) => loginUrl(server.base, flow, init),
    takeAuthError: () => takeAuthError(server.base),
  }
}
