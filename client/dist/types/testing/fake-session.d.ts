import type { EndReason, OrdersPause } from '../core/client.ts';
import type { FakeSocket } from './fake-socket.ts';
/** A session that begins. */
export interface FakeSession {
    /** `trade` by default. */
    readonly scope?: string | undefined;
    /** The id of the user; none by default, as on servers that do not know it. */
    readonly subject?: string | undefined;
    /** How long the session lasts, in milliseconds; an hour by default. */
    readonly expiresInMs?: number | undefined;
    /** How long it lasts unused, in milliseconds; as long as that by default. */
    readonly idleMs?: number | undefined;
    /** That the orders of its user are paused; they are not by default. */
    readonly ordersPaused?: OrdersPause | undefined;
}
/** The session of the browser, and what the server does with those who have none. */
export declare class FakeSessions {
    #private;
    /** Begins a session, in place of one before it. */
    begin(session: FakeSession): void;
    /** Begins a session of the same user in another browser. @returns its tag */
    beginElsewhere(device: string | undefined): string;
    /**
     * Ends the session, if there is one, and tells the page why.
     * @returns a function that then closes the trading sockets
     */
    end(reason: EndReason): () => void;
    /** Opens a socket that needs a session, or refuses it as the server does: it opens and closes at once. */
    accept(socket: FakeSocket): boolean;
    /** Pauses the orders of the session's user, or ends that, and tells the page. */
    pauseOrders(ordersPaused: OrdersPause | undefined): void;
    left(socket: FakeSocket): void;
    /** The server's own response to a request, which is its method and path; undefined if it passes the request on. */
    respond(request: string, query: string): Response | undefined;
}
