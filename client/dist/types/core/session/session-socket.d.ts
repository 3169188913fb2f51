import type { Server } from '../server.ts';
import type { SessionEvent } from './session-state.ts';
/** The session socket of one tab. */
export interface SessionSocket {
    /**
     * Connects, unless the socket is connected or its delay is not over.
     * @returns after how many milliseconds to check the session and to call this again
     */
    open(): number;
    /** Closes the socket and clears its delay. */
    close(): void;
}
/**
 * Prepares a session socket, without connecting.
 * @param onEvent called with every message, and with undefined when {@link SessionSocket.open} has to be called again
 */
export declare function sessionSocket(server: Server, onEvent: (event: SessionEvent | null | undefined) => void): SessionSocket;
