import { type Server, type ServerOptions } from '../base/server.ts';
import type { SessionStore } from './session-store.ts';
import { type EndReason, type SessionState } from './session-state.ts';
/** Follows the session through `GET /auth/session`, the session socket and messages of other tabs. */
export declare class SessionFollower implements SessionStore {
    #private;
    constructor(server: Server);
    readonly get: () => SessionState;
    readonly subscribe: (listener: (isOther: boolean) => void) => (() => void);
    readonly check: () => Promise<void>;
    readonly confirm: () => Promise<boolean>;
    readonly end: (reason: EndReason) => void;
    readonly close: () => void;
}
/**
 * Creates the session part of a client alone, for a page that only shows whether a user is logged in. It sends nothing before the
 * first `subscribe`.
 */
export declare function createSession(options?: ServerOptions): SessionStore;
