/** Why a session ended. `gone`: nobody can tell. */
export type EndReason = 'logout' | 'replaced' | 'expired' | 'idle' | 'refused' | 'revoked' | 'gone';
/** Somebody is logged in. All times are milliseconds of the user's own clock, as `Date.now()`. */
export interface ActiveSession {
    readonly status: 'active';
    /** When the session ends whatever the user does. */
    readonly expiresAt: number;
    /** When it ends unless it is used: by API calls, open trading sockets, or `extend()`. */
    readonly idleExpiresAt: number;
    readonly scope: string;
    readonly subject?: string;
    /** The session ends within a minute, because of this limit. */
    readonly expiring?: 'idle' | 'absolute';
}
/** What is known of the user's session. */
export type SessionState = 
/** Nothing yet: the page has just been loaded. */
{
    readonly status: 'unknown';
}
/** Nobody is logged in. `reason` is there when a session of this page has ended. */
 | {
    readonly status: 'anonymous';
    readonly reason?: EndReason;
} | ActiveSession
/** The server cannot tell right now. `last` is what was known before: keep what you show. */
 | {
    readonly status: 'unavailable';
    readonly last?: ActiveSession;
};
/** The body of GET /auth/session; times are seconds of the server's clock. */
export type SessionBody = {
    readonly authenticated: false;
    readonly now: number;
} | {
    readonly authenticated: true;
    readonly now: number;
    readonly expires_at: number;
    readonly idle_expires_at: number;
    readonly scope: string;
    readonly subject?: string;
};
/** What the session socket says. */
export type SessionEvent = (SessionBody & {
    readonly event: 'session';
}) | {
    readonly event: 'expiring';
    readonly at: number;
    readonly why: 'idle' | 'absolute';
    readonly now: number;
} | {
    readonly event: 'ended';
    readonly reason: EndReason;
};
