import type { CallInit } from './api/call.ts';
import type { KeyUse } from './api/key-use.ts';
import type { ApiError } from './base/errors.ts';
import type { ServerClock } from './base/server-clock.ts';
import type { Server } from './server.ts';
import type { SessionStore } from './session/session-store.ts';
/**
 * What the parts of a client share. An entry that is loaded later gets it from them, because it has copies of its own of whatever
 * it imports.
 */
export interface Core {
    readonly server: Server;
    readonly store: SessionStore;
    readonly clock: ServerClock;
    /** Calls a route of the server itself; with POST by default. @throws ApiError unless the status is 2xx */
    readonly ask: (path: string, init?: CallInit) => Promise<Response>;
    /**
     * What this client knows of an `Idempotency-Key` that is about to be sent.
     * @param session in which it was first sent, if that was before a reload
     */
    readonly useKey: (key: string | undefined, session?: string) => KeyUse;
    /** The class by which the page tells errors. */
    readonly ApiError: typeof ApiError;
}
