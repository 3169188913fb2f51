import { type AuthError, type Flow, type LoginOptions } from './login.ts';
import type { Server } from './server.ts';
import type { SessionStore } from './session-store.ts';
/** The user's session, the same in all tabs, and what can be done with it. */
export interface Session extends Omit<SessionStore, 'confirm' | 'end'> {
    /** Says that the user is here, which moves the idle limit. @throws ApiError */
    extend(): Promise<void>;
    /** Logs out, on all instances and in all tabs. @throws ApiError when the user is still logged in */
    logout(): Promise<void>;
    /** The address that logs the user in, or signs them up. It works as a link and as a navigation, not with `fetch`. */
    loginUrl(flow?: Flow, options?: LoginOptions): string;
    /** Why the last login failed, if it did. Call it once, when the page loads. */
    takeAuthError(): AuthError | undefined;
}
/** The whole session of a client. */
export declare function sessionOf(server: Server, store: SessionStore): Session;
