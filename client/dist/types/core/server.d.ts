import type { ServerClock } from './base/server-clock.ts';
import type { SessionBody } from './session/session-state.ts';
/** Where the server is, and how to reach it. */
export interface ServerOptions {
    /**
     * The origin of the server, e.g. `https://bff.example.com`; the origin of the page by default. If the two differ, the
     * operator of the server must list the origin of the page in `FRONTEND_ORIGINS`.
     */
    readonly baseUrl?: string | undefined;
    /** Replaces the global `fetch`, in tests or for a page that wraps it. */
    readonly fetch?: (url: string, init: RequestInit) => Promise<Response>;
    /** Replaces the global `WebSocket`, in tests or for a page that wraps it. */
    readonly WebSocket?: new (url: string) => WebSocket;
}
/** The connection of the package to its server. */
export interface Server {
    /** The prefix of every path: the origin of the server, or an empty string for that of the page. */
    readonly base: string;
    readonly fetch: (path: string, init: RequestInit) => Promise<Response>;
    readonly socket: (path: string) => WebSocket;
    /** Asks for the session. Undefined without a valid response, so that the session may or may not be alive. It never rejects. */
    session(): Promise<SessionBody | undefined>;
    /**
     * The value if it is a valid body, whose time the clock then notes; undefined for anything else, such as a response of a proxy.
     * @param sentAt when it was asked for, if it was (`ServerClock.note`)
     */
    bodyOf(value: unknown, sentAt?: number): SessionBody | undefined;
}
/** The path of the session. */
export declare const SESSION_PATH = "/auth/session";
/** Prepares the connection to a server. It uses no browser API until it is used, so it also works on a rendering server. */
export declare function serverAt(options: ServerOptions, clock?: ServerClock): Server;
