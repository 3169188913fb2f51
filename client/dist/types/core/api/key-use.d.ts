import type { Server } from '../server.ts';
import type { SessionStore } from '../session/session-store.ts';
/** What this page knows of an `Idempotency-Key` that it has sent, or of a call without one. */
export interface KeyUse {
    /** True once a call with the key may have been executed. */
    mayBeExecuted: boolean;
    /**
     * Asks whether the session is still the one in which the key was first sent. In another session the server does not know
     * the key, and would send the call again. Resolves to false if that cannot be told, or is told only after the machine has slept.
     */
    readonly isSameSession: () => Promise<boolean>;
    /** Forgets the key, with which nothing was executed. */
    readonly forget: () => void;
}
/**
 * Remembers in which session each key was first sent, until the page is left: in a later session the key must not be sent. The server
 * limits the keys of a session. A call without a key is known only to its caller.
 */
export declare function keyUses(server: Server, store: Pick<SessionStore, 'get'>): (key: string | undefined, session?: string) => KeyUse;
