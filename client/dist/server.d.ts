/** Where the server is, and with what to talk to it. */
export interface ServerOptions {
    /** Origin of the server, e.g. `https://bff.example.com`. The page's own unless given. */
    readonly baseUrl?: string;
    /** For tests and for pages that wrap `fetch`. */
    readonly fetch?: (url: string, init: RequestInit) => Promise<Response>;
    /** For tests. */
    readonly WebSocket?: new (url: string) => WebSocket;
}
/** The server as the rest of the package sees it. */
export interface Server {
    /** What stands before a path. */
    readonly base: string;
    readonly fetch: (path: string, init: RequestInit) => Promise<Response>;
    readonly socket: (path: string) => WebSocket;
}
/** The address of the session. */
export declare const SESSION_PATH = "/auth/session";
/** Reads what a page says about its server. Touches nothing of the browser before it is used. */
export declare function serverAt(options: ServerOptions): Server;
