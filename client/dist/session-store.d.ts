import { type ServerOptions } from './server.ts';
import type { EndReason, SessionState } from './session-state.ts';
/** What is known of the user's session, the same in all tabs. It is followed from the first `subscribe` on. */
export interface SessionStore {
    /** What is known now: the same object until something changes. */
    readonly get: () => SessionState;
    /** Calls the listener after every change. @returns what ends that */
    readonly subscribe: (listener: () => void) => () => void;
    /** Asks the server now. Resolves when the answer, or that there is none, is in `get()`. */
    readonly check: () => Promise<void>;
    /** A call was refused for lack of a session. @returns false when nobody is logged in any more */
    readonly confirm: () => Promise<boolean>;
    /** This page knows that the session has ended. */
    readonly end: (reason: EndReason) => void;
    /** Stops following the session. */
    readonly close: () => void;
}
/** Follows the session of a server. It is the part of a client that knows who is there; nothing is sent before the first `subscribe`. */
export declare function createSession(options?: ServerOptions): SessionStore;
