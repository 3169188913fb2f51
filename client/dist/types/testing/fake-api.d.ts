import type { ProblemCode } from '../core/client.ts';
/** A call that has reached the trading service. */
export interface FakeCall {
    readonly method: string;
    /** The path of the trading service with its query, without `/api`. */
    readonly path: string;
    readonly headers: Headers;
    /** The body, if it is JSON. */
    readonly json: unknown;
}
/**
 * The JSON of a response with the status 200, any other `Response`, or a function that is asked each time. With
 * `Response.error()` the response is lost on its way.
 */
export type FakeAnswer<Body> = Body | Response | ((call: FakeCall) => Body | Response | Promise<Body | Response>);
/**
 * An error of the server.
 * ```ts
 * client.server.respond('POST', '/payment-agents/v1/transfer', problem(504, 'outcome_unknown', { outcome: 'unknown' }))
 * ```
 * @param more other members of the body, or `retryAfter`, in seconds
 */
export declare function problem(status: number, code: ProblemCode, { retryAfter, ...more }?: {
    readonly retryAfter?: number;
} & Readonly<Record<string, unknown>>): Response;
/** The API and the session routes: what a test has said comes before what the server does by itself. */
export declare class FakeApi {
    #private;
    readonly calls: FakeCall[];
    respond(method: string, path: string, answer: FakeAnswer<unknown>): void;
    /**
     * The response to a request.
     * @param own the response that the server gives by itself, undefined for none
     * @returns a response of the type `error` if it is lost
     */
    handle(path: string, query: string, init: RequestInit, own: (request: string) => Response | undefined): Promise<Response>;
}
