import type { CloseCode, ProblemCode } from '../generated/catalog.ts';
import type { SentOrder } from './order-shape.ts';
/** The body of an error of the server (RFC 9457, application/problem+json). */
export interface Problem {
    /** `/problems/` and the code: an address on the server that explains it. */
    readonly type: string;
    /** Text for people, which may change. */
    readonly title: string;
    readonly status: number;
    /** Text for people, which may change. */
    readonly detail: string;
    /** What happened. Decide by this. */
    readonly code: ProblemCode | (string & {});
    /** Name this when you report a fault. */
    readonly request_id: string;
    /** The fields that are wrong; only with `validation_failed`. */
    readonly errors?: readonly {
        readonly field: string;
        readonly message: string;
    }[];
    /** Set when the call may have been executed. */
    readonly outcome?: 'unknown';
    /** The address of the login; only with `login_required` and `session_expired`. */
    readonly login_url?: string;
}
/** The codes of the package itself. */
type OwnCode = 'not_sent' | 'aborted';
/**
 * A call of the server that failed. Decide by `problem.code`, and by `status` where there is no problem.
 * ```ts
 * if (error instanceof ApiError && error.problem?.code === 'login_required') client.login()
 * ```
 */
export declare class ApiError extends Error {
    /** The HTTP status; 0 if there was no response, or only a redirect, whose status browsers hide. */
    readonly status: number;
    /**
     * The error as the server describes it. Undefined if there was no response, or if the response came unchanged from the
     * trading service or from a proxy.
     */
    readonly problem: Problem | undefined;
    /**
     * The code of the problem; or `not_sent`: the call was not sent and never will be, because the browser is offline; or `aborted`:
     * you aborted it when it may have been sent, and `cause` is the reason of your signal.
     */
    readonly code: OwnCode | Problem['code'] | undefined;
    /** Text for people, which may change: that of the problem, or why `once` did not repeat the call. */
    readonly detail: string | undefined;
    /** Set when the call may have been executed: find out before you repeat it. Never set for a GET. */
    readonly outcome: 'unknown' | undefined;
    /** How long to wait before the next attempt, in seconds, if the response says so. */
    readonly retryAfter: number | undefined;
    /** The response, if there was one. Its body can be read. */
    readonly response: Response | undefined;
    constructor(method: string, path: string, response?: Response, problem?: Problem, cause?: unknown, own?: OwnCode);
}
/** The codes of the package itself. Any other code of a {@link SocketError} comes from the trading service. */
export type SocketErrorCode = 
/** The command was not sent and never will be. The user may try again. */
'not_sent'
/** No reply arrived in time. */
 | 'timeout'
/** You aborted after the command was sent, so its outcome is unknown. */
 | 'aborted'
/** The connection was lost before the reply arrived. */
 | 'connection_lost'
/** The connection closed and will not be opened again; `closeCode` says why. */
 | 'ended'
/** You closed the socket. The outcome of a command that had been sent is unknown. */
 | 'closed'
/** A part of the package, such as that of `series`, could not be loaded, or came too late for an order. Nothing was sent. */
 | 'not_loaded';
/**
 * A message on a socket that failed.
 * ```ts
 * if (error instanceof SocketError && error.outcome === 'unknown') showOpenContracts()
 * ```
 */
export declare class SocketError extends Error {
    /** A code of the package, or the code of the trading service's own error. */
    readonly code: SocketErrorCode | (string & {});
    /** Set when the command may have been executed: look at the open contracts, and never send it again unseen. */
    readonly outcome: 'unknown' | undefined;
    /** The whole reply of the trading service, if it refused the message. */
    readonly reply: Readonly<Record<string, unknown>> | undefined;
    /** The close code of the connection, if that is why the message failed. */
    readonly closeCode: CloseCode | (number & {}) | undefined;
    /** The `buy` whose outcome is unknown, for `fate` of `trading-bff-client/orders`. */
    readonly order: SentOrder | undefined;
    constructor(code: SocketError['code'], message: string, { cause, ...more }?: Partial<Pick<SocketError, 'outcome' | 'reply' | 'closeCode' | 'order' | 'cause'>>);
}
/** Waits for another entry of the package, which is loaded only when a page uses it. @throws SocketError `not_loaded` */
export declare function loaded<Entry>(entry: Promise<Entry>): Promise<Entry>;
/** Passes an error that nobody waits for to the page's error handlers, if there is a page. */
export declare function report(error: unknown): void;
/** Calls back for every listener that is still in the set when its turn comes, even after a call has thrown. */
export declare function notify<T>(listeners: ReadonlySet<T>, call: (listener: T) => void): void;
export {};
