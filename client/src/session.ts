import { call } from './call.ts'
import { ApiError } from './errors.ts'
import { loginUrl, takeAuthError, type AuthError, type Flow, type LoginOptions } from './login.ts'
import type { Server } from './server.ts'
import { SESSION_PATH } from './server.ts'
import type { SessionStore } from './session-store.ts'

/** The user's session, the same in all tabs, and what can be done with it. */
export interface Session extends Omit<SessionStore, 'confirm' | 'end'> {
  /** Says that the user is here, which moves the idle limit. @throws ApiError */
  extend(): Promise<void>
  /** Logs out, on all instances and in all tabs. @throws ApiError when the user is still logged in */
  logout(): Promise<void>
  /** The address that logs the user in, or signs them up. It works as a link and as a navigation, not with `fetch`. */
  loginUrl(flow?: Flow, options?: LoginOptions): string
  /** Why the last login failed, if it did. Call it once, when the page loads. */
  takeAuthError(): AuthError | undefined
}

/** The whole session of a client. */
export function sessionOf(server: Server, store: SessionStore): Session {
  return {
    ...store,
    async extend() {
      try {
        await call(server, SESSION_PATH, { method: 'POST' })
      } catch (error) {
        if (error instanceof ApiError && error.status === 401) await store.confirm()
        throw error
      }
      await store.check()
    },
    async logout() {
      await call(server, '/auth/logout', { method: 'POST' })
      store.end('logout')
    },
    loginUrl: (flow, init) => loginUrl(server.base, flow, init),
    takeAuthError: () => takeAuthError(server.base),
  }
}
