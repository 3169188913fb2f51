import type { Client } from '../core/client.ts';
import { type LogoutOptions } from '../core/session/session.ts';
/** A session of the user. All times are in milliseconds since 1970 by the clock of the user, comparable with `Date.now()`. */
export interface OwnSession {
    /** Tells this session from every other: that of the browser which has it is the `session` of `client.session.get()`. */
    readonly tag: string;
    /** It is the session of this page. */
    readonly isCurrent: boolean;
    /** When the user logged in. */
    readonly startedAt: number;
    /** When the session was last used, up to a minute early. */
    readonly lastUsedAt?: number | undefined;
    /** The browser and the system of the login, such as `Firefox on Windows`, as far as they are known. A thief can choose it. */
    readonly device?: string | undefined;
}
/** Options of {@link listSessions} and {@link endSession}. */
export interface OwnSessionsOptions {
    /** Stops waiting for the server. */
    readonly signal?: AbortSignal | undefined;
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
export declare function listSessions(client: Pick<Client, 'session'>, { signal }?: OwnSessionsOptions): Promise<readonly OwnSession[]>;
/**
 * Logs the user out in another browser: ends the session with this tag, and closes its sockets. Resolves too if it has ended
 * meanwhile.
 * @throws ApiError when it may go on: say so, and offer it again. With the problem `current_session` it is the session of this
 * page, which `client.logout()` ends
 */
export declare function endSession(client: Pick<Client, 'session'>, tag: string, { signal }?: OwnSessionsOptions): Promise<void>;
/**
 * Logs out as `client.logout()` does, and tells where the user logs out at the provider, too, on servers with OpenID Connect.
 * ```ts
 * location.assign((await logOutAtProvider(client)) ?? '/')
 * ```
 * @returns the address to which the page must go; undefined where the provider has none
 * @throws ApiError as `client.logout()` does
 */
export declare function logOutAtProvider(client: Pick<Client, 'session'>, options?: LogoutOptions): Promise<string | undefined>;
