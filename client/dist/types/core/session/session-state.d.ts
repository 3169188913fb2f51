/**
 * Why a session ended.
 * - `logout`: the user logged out, here or in another tab.
 * - `replaced`: a new login took its place.
 * - `expired`: it reached its absolute limit.
 * - `idle`: it was unused for too long.
 * - `refused`: the trading service or the provider no longer accepts it.
 * - `revoked`: the operator ended it, or the login provider.
 * - `gone`: the reason is unknown.
 */
export type EndReason = 'logout' | 'replaced' | 'expired' | 'idle' | 'refused' | 'revoked' | 'gone';
/** A user is logged in. All times are in milliseconds since 1970 by the clock of the user, comparable with `Date.now()`. */
export interface ActiveSession {
    readonly status: 'active';
    /** Tells this session from every other, also of the same user. It stays the same until the session ends. */
    readonly session: string;
    /** When the session ends, whatever the user does. */
    readonly expiresAt: number;
    /** When the session ends unless it is used. API calls, open trading sockets and `extend()` count as use. */
    readonly idleExpiresAt: number;
    /** The OAuth 2.0 scopes that the user has granted, separated by spaces. */
    readonly scope: string;
    /** The id of the user, on servers that know it. */
    readonly subject?: string | undefined;
    /** What the provider says of the user, on servers with OpenID Connect: those that the operator shows to pages. */
    readonly claims?: Claims | undefined;
    /** Set while the operator refuses orders of all users, or of this one. */
    readonly ordersPaused?: OrdersPause | undefined;
    /** Set when the session ends within a minute, with the limit that ends it. `extend()` helps against `idle` only. */
    readonly expiring?: 'idle' | 'absolute' | undefined;
}
/** Claims of an ID token, by name. */
type Claims = Readonly<Record<string, string | number | boolean>>;
/** Why orders are refused: disable the button, and say so. */
export interface OrdersPause {
    /** What the operator says about it. Show it as text. */
    readonly message?: string;
    /** When it ends, in seconds since 1970 by the clock of the server; undefined where nobody knows yet. */
    readonly until?: number;
    /** Whether the user may sell and cancel all the same. */
    readonly closing: boolean;
}
/** What the operator tells all users. Show it as text. */
export interface Notice {
    readonly message: string;
    /** When it ends, in seconds since 1970 by the clock of the server, which takes it back then. */
    readonly until?: number;
}
/** The session of the user, as far as this page knows it. Decide by `status`. `notice` may be there in every state. */
export type SessionState = SessionStatus & {
    readonly notice?: Notice | undefined;
};
type SessionStatus = 
/** Nothing is known yet, because the page has just been loaded. */
{
    readonly status: 'unknown';
}
/** No user is logged in. `reason` is set if a session ended while this page was open. */
 | {
    readonly status: 'anonymous';
    readonly reason?: EndReason | undefined;
} | ActiveSession
/** The server cannot tell at the moment. Keep showing `last`, the state before; the client checks again by itself. */
 | {
    readonly status: 'unavailable';
    readonly last?: ActiveSession | undefined;
};
/** The body of GET /auth/session; times are seconds of the server's clock. */
export type SessionBody = ({
    readonly authenticated: false;
    readonly now: number;
} | {
    readonly authenticated: true;
    readonly now: number;
    readonly session: string;
    readonly expires_at: number;
    readonly idle_expires_at: number;
    readonly scope: string;
    readonly subject?: string;
    readonly claims?: Claims;
    readonly orders_paused?: OrdersPause;
}) & {
    readonly notice?: Notice;
};
/**
 * A message of the session socket, or of another tab: the session, why it has ended, or a notice, which is null when it has
 * ended. Any other message has none of these.
 */
export type SessionEvent = Partial<Omit<SessionBody, 'notice'>> & {
    readonly session?: string;
    readonly reason?: EndReason;
    readonly notice?: Notice | null | undefined;
};
/**
 * Tells one session from another, also two of the same user. Put it into the keys of what you keep of a user, such as those of
 * a cache.
 * @returns undefined while no user is logged in, or that is not known yet
 */
export declare function sessionKey(state: SessionState & {
    readonly last?: ActiveSession | undefined;
}): string | undefined;
export {};
