import type { Server } from './server.ts';
import type { SessionEvent } from './session-state.ts';
/** The session socket of one tab. */
export interface SessionSocket {
    /** Connects, unless it is connected or has to wait. */
    open(): void;
    /** Closes it. It may be opened again at once. */
    close(): void;
    /** True once the server has said something on this connection. */
    isLive(): boolean;
}
/**
 * Prepares one.
 * @param onReady told when it may be opened again after it was lost
 */
export declare function sessionSocket(server: Server, onEvent: (event: SessionEvent) => void, onReady: () => unknown): SessionSocket;
