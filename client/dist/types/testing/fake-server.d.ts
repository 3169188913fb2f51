import type { ApiPath, EndReason, Operation, OrdersPause, ResponseBody, Responses } from '../core/client.ts';
import { type FakeAnswer, type FakeCall } from './fake-api.ts';
import { FakeNetwork, type NetworkState } from './fake-network.ts';
import { FakeSessions, type FakeSession } from './fake-session.ts';
import type { FakeSocket } from './fake-socket.ts';
import { type FakeBody, type FakeMessage, type FakeReply, type StreamMembers } from './fake-trading.ts';
/** The server and the trading service that a fake client talks to, in memory. A test drives them. */
export interface FakeServer {
    /** Logs a user in, as in another tab. Resolves once the page knows. */
    logIn(session?: FakeSession): Promise<void>;
    /** Logs the same user in in another browser, for a page that lists the user's sessions. @returns the tag of that session */
    logInElsewhere(device?: string): string;
    /** Ends the session, as from elsewhere; `logout` by default. Resolves once the page knows. */
    endSession(reason?: EndReason): Promise<void>;
    /**
     * Says in the state of the session that orders are paused, or without a pause no longer. Resolves once the page knows. How
     * orders are refused, {@link respond} and {@link reply} say.
     */
    pauseOrders(pause?: OrdersPause): Promise<void>;
    /** The addresses that `login()` and `signup()` would have led to. */
    readonly navigations: readonly string[];
    /**
     * Says how calls of the API are answered from now on. The path has no query unless the answer is for that query alone.
     * Without an answer, a call gets 404 `not_found`; without a session, 401 `login_required`.
     * ```ts
     * client.server.respond('GET', '/trading/v1/options/accounts', { data: [{ account_id: 'VRTC100' }] })
     * ```
     */
    respond<M extends keyof Responses, P extends ApiPath<M>>(method: M, path: P, answer: FakeAnswer<ResponseBody<M, P>>): void;
    /** The same for a route of the server itself, such as `POST /auth/logout`, in place of what it does. */
    respond(method: 'GET' | 'POST' | 'DELETE', path: `/auth/${string}`, answer: FakeAnswer<object>): void;
    /** The calls that have reached the trading service, oldest first. */
    readonly calls: readonly FakeCall[];
    /**
     * Says how messages with this operation are answered from now on. Without an answer, a stream is silent until
     * {@link push}, and anything else is refused with `NoReply`.
     * ```ts
     * client.server.reply('buy', { buy: { contract_id: 7, transaction_id: 8, … } })
     * client.server.reply('buy', () => client.server.disconnect()) // the answer is lost
     * ```
     */
    reply<O extends Operation>(operation: O, reply: FakeReply<FakeBody<O>>): void;
    /** The same for an operation that the package does not know: give the type of the body by hand. */
    reply<Body extends object = never>(operation: string, reply: [Body] extends [never] ? never : FakeReply<NoInfer<Body>>): void;
    /**
     * Sends a message on every stream whose request has these members.
     * ```ts
     * client.server.push({ ticks: 'R_100' }, { tick: { epoch: 1_700_000_000, quote: 1.5 } })
     * ```
     * @returns how many streams that are
     */
    push<const M extends object>(stream: StreamMembers<M>, body: FakeBody<keyof M & Operation>): number;
    /** The messages of the page's sockets, oldest first, without pings. */
    readonly messages: readonly FakeMessage[];
    /**
     * Closes the sockets: all but that of the session, or those of one account. The code is 1006 by default, as after a lost
     * connection. They reconnect at once, unless the code or a `;retry_after=` in the reason asks for a delay.
     */
    disconnect(options?: {
        readonly code?: number | undefined;
        readonly reason?: string | undefined;
        readonly account?: string | undefined;
    }): void;
    /** Changes what the network does. It is up at first. */
    setNetwork(state: NetworkState): void;
}
/** The parts of a fake server, and how a client reaches them. */
export declare class ServerInMemory {
    #private;
    readonly sessions: FakeSessions;
    readonly network: FakeNetwork;
    constructor(base: string);
    /** Answers a request as `fetch` does. */
    readonly fetch: (url: string, init: RequestInit) => Promise<Response>;
    /** Takes a socket that a page opens. */
    connect(socket: FakeSocket): void;
    /**
     * What a test may do with the server.
     * @param check makes the page ask for its session
     */
    controls(navigations: readonly string[], check: () => Promise<void>): FakeServer;
}
