import type { Server } from './server.ts';
/** A request as `fetch` takes it, and a little more. */
export interface CallInit extends Omit<RequestInit, 'method' | 'headers'> {
    readonly method?: string;
    readonly headers?: Readonly<Record<string, string>>;
    /** Sent as JSON, in place of `body`. */
    readonly json?: unknown;
    /** Longest wait for the headers of the response; 60,000 unless given. */
    readonly timeoutMs?: number;
}
/**
 * Calls the server once.
 * @throws ApiError unless the status is 2xx or 304; the signal's reason when the caller aborted
 */
export declare function call(server: Server, path: string, init?: CallInit): Promise<Response>;
