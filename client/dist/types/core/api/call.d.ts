import { type Problem } from '../base/errors.ts';
import type { Server } from '../server.ts';
/** The default of {@link CallInit.timeoutMs}. */
export declare const TIMEOUT_MS = 60000;
/** The maximum delay of a timer. A longer one would end at once. */
export declare const MAX_TIMEOUT_MS = 2147483647;
/** The options of `fetch`, and `json` and `timeoutMs`. */
export interface CallInit extends Omit<RequestInit, 'method' | 'headers' | 'signal'> {
    readonly method?: string;
    readonly headers?: RequestInit['headers'] | undefined;
    readonly signal?: AbortSignal | null | undefined;
    /** A value that is sent as JSON instead of `body`. */
    readonly json?: unknown;
    /**
     * Timeout until the response headers arrive, in milliseconds; 60,000 by default. The body may take longer, but not that of an order
     * of `once`.
     */
    readonly timeoutMs?: number | undefined;
}
/**
 * Sends one request to the server.
 * @param isWhole true to wait for the whole body, too: it may stall without an error
 * @throws ApiError unless the status is 2xx or 304, and if a proxy answers anything but a GET with a page; with the code `aborted`
 * when the caller aborts anything but a GET; the reason of `signal` when he aborts a GET, or before anything was sent
 */
export declare function call(server: Server, path: string, init?: Omit<CallInit, 'json'>, isWhole?: boolean): Promise<Response>;
/**
 * The problem in a response, if it is one of the server. The body can still be read.
 * @throws if the body is cut off or malformed, which counts as no problem
 */
export declare function problemOf(response: Response): Promise<Problem | undefined>;
