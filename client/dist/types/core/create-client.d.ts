import { type Api } from './api/api.ts';
import { type ServerTime } from './base/server-clock.ts';
import { type Server, type ServerOptions } from './server.ts';
import type { LoginOptions } from './session/login.ts';
import { type LogoutOptions, type Session } from './session/session.ts';
import { type PublicSocket, type TradingSocket } from './sockets/socket.ts';
/** Everything that a page needs to talk to the server. */
export interface Client {
    /** The session of the user: whether there is one, until when, and how to log in and out. */
    readonly session: Session;
    /** Calls the API of the trading service. */
    readonly api: Api;
    /** Navigates to the login. Afterwards the user returns to this page, or to `returnTo`. */
    login(options?: LoginOptions): void;
    /** Navigates to the sign-up. Afterwards the user returns to this page, or to `returnTo`. */
    signup(options?: LoginOptions): void;
    /** Logs out: the same as {@link Session.logout}. */
    logout(options?: LogoutOptions): Promise<void>;
    /**
     * Opens a socket for market data, which needs no login. All public sockets of a client share one connection. Close the
     * socket when you no longer need it.
     */
    publicSocket(): PublicSocket;
    /**
     * Opens a socket for trading on an account of the user. All sockets of a client for the same account share one
     * connection, unless the session has changed between them. Close the socket when you no longer need it.
     * @throws TypeError if this cannot be the id of an account
     */
    tradingSocket(accountId: string): TradingSocket;
    /**
     * The time by the clock of the server, for countdowns that must be right on a machine whose clock is wrong. Undefined until the
     * session has been followed or asked for.
     */
    serverNow(): ServerTime | undefined;
    /**
     * Closes every socket, also those that are asked for later, and stops following the session, for a page that goes on without
     * its client.
     */
    close(): void;
}
/** Options of {@link createClient}. */
export interface ClientOptions extends ServerOptions {
    /** Lets `trading-bff-client/devtools` see what this client does. For development: `import.meta.env.DEV`, for example. */
    readonly debug?: boolean | undefined;
}
/** A client with `debug`, and the connection to its server, whose functions the devtools replace. */
export type Debugged = readonly [client: Client, server: Server];
/** Where the devtools find these. They put something of their own in place of the list. */
export interface DebugScope {
    tradingBff?: {
        push(entry: Debugged): unknown;
    };
}
/**
 * Creates the client of a page; one is enough. It sends nothing until you use it, so you can also create it while a
 * server renders the page.
 * ```ts
 * const client = createClient({ baseUrl: 'https://bff.example.com' })
 * ```
 */
export declare function createClient(options?: ClientOptions): Client;
