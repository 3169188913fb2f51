import { type Api } from './api.ts';
import type { LoginOptions } from './login.ts';
import { type ServerOptions } from './server.ts';
import { type Session } from './session.ts';
import { type PublicSocket, type TradingSocket } from './socket.ts';
/** Everything that a page needs of the server. */
export interface Client {
    readonly session: Session;
    readonly api: Api;
    /** Leaves the page to log in, and comes back to it. */
    login(options?: LoginOptions): void;
    /** Leaves the page to sign up, and comes back to it. */
    signup(options?: LoginOptions): void;
    /** Logs out, on all instances and in all tabs. @throws ApiError when the user is still logged in */
    logout(): Promise<void>;
    /** Joins the page's connection for market data, or opens it. Close what you no longer need. */
    publicSocket(): PublicSocket;
    /** Joins the page's connection for trading on an account, or opens it. Close what you no longer need. */
    tradingSocket(accountId: string): TradingSocket;
    /** Ends everything. */
    close(): void;
}
/** Makes one for a page. Nothing is sent before something is asked of it, so it may also be made while rendering on a server. */
export declare function createClient(options?: ServerOptions): Client;
