import type { Server } from './server.ts';
import type { SessionEvent } from './session-state.ts';
/** The session socket of one tab. */
export interface SessionSocket {
    /** Connects, unless the socket is connected or its delay is not over. */
    open(): void;
    /** Closes the socket and clears its delay. */
    close(): void;
    /** True once a message has arrived on this connection. */
    isLive(): boolean;
}
/**
 * Prepares a session socket, without connecting.
 * @param onReady called when a lost socket may be opened again
 */
export declare function sessionSocket(server: Server, onEvent: (event: SessionEvent) => void, onReady: () => unknown): SessionSocket;
