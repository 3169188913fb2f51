import type { EndReason, SessionState } from './session-state.ts';
/** The state of the user's session, kept the same in all tabs. The store follows the session from the first `subscribe` on. */
export interface SessionStore {
    /** The current state. It is the same object until something changes, as `useSyncExternalStore` requires. */
    readonly get: () => SessionState;
    /**
     * Calls the listener after every change. The first call of `subscribe` starts to follow the session.
     * @param listener - `isOther` is true if a session has begun, has ended, or has taken the place of another, perhaps another
     * user's: then discard what you show of the user, and load it again
     * @returns a function that stops the calls
     */
    readonly subscribe: (listener: (isOther: boolean) => void) => () => void;
    /** Asks the server now. Resolves once `get()` reflects the response, or that there was none. It never rejects. */
    readonly check: () => Promise<void>;
    /**
     * Asks the server several times whether the session has really ended. Call it when the server refuses a call of yours
     * because there is no session.
     * @returns false if no user is logged in
     */
    readonly confirm: () => Promise<boolean>;
    /** Reports that the session has ended, for a page that has ended it itself. */
    readonly end: (reason: EndReason) => void;
    /** Stops following the session. */
    readonly close: () => void;
}
