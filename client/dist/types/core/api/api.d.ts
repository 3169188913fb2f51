import type { Requests, Responses } from '../generated/catalog.ts';
import type { Core } from '../core.ts';
import { type CallInit } from './call.ts';
/**
 * Paths that only some deployments have, such as the partner overview. Add yours by declaration merging:
 * ```ts
 * declare module 'trading-bff-client' {
 *   interface MorePaths { GET: '/partners/analytics/v1/overview' }
 * }
 * ```
 */
export interface MorePaths {
}
type Method = keyof Responses;
type PathOf<M extends Method> = (keyof Responses[M] & string) | (M extends keyof MorePaths ? MorePaths[M] & string : never);
/** A path of the API for a method, with or without a query. */
export type ApiPath<M extends Method = Method> = PathOf<M> | `${PathOf<M>}?${string}`;
type WithoutQuery<P> = P extends `${infer Path}?${string}` ? Path : P;
/** The JSON in the response of a call, as far as it is publicly documented. */
export type ResponseBody<M extends Method, P extends ApiPath<M>> = WithoutQuery<P> extends keyof Responses[M] ? Responses[M][WithoutQuery<P>] : unknown;
/** The JSON that a call sends, as far as it is publicly documented. */
export type RequestBody<M extends Method, P extends ApiPath<M>> = M extends keyof Requests ? WithoutQuery<P> extends keyof Requests[M] ? Requests[M][WithoutQuery<P>] : unknown : unknown;
/**
 * A `Response` whose `json()` returns the publicly documented type, or the type that you give it. The package does not
 * check the body against it.
 */
export interface ApiResponse<Body = unknown> extends Omit<Response, 'json'> {
    json<T = Body>(): Promise<T>;
}
/** The options of any call. */
interface AnyInit extends CallInit {
    /**
     * The `Idempotency-Key` header of the call; `true` makes a new key. The server sends a POST or PATCH with the same key at
     * most once, and answers its repetition with the first response.
     */
    readonly idempotencyKey?: string | true | undefined;
}
/** The options of `fetch`, and `json`, `timeoutMs` and `idempotencyKey`. */
export interface ApiInit<M extends Method, P extends ApiPath<M> = ApiPath<M>> extends AnyInit {
    readonly method?: M;
    /** A value that is sent as JSON instead of `body`. The package does not check it against its type. */
    readonly json?: RequestBody<M, P> | undefined;
}
/**
 * Calls the trading service through the server. `path` is a path of the trading service, without `/api`. The call
 * carries the session cookie and `X-CSRF`. It is repeated once after `credential_renewed` and `upstream_unreachable`,
 * which mean that it was not executed, and a GET also after `shutting_down`. With an `idempotencyKey` it is also repeated
 * after `session_store_unavailable`, and after `idempotency_in_progress` until the running call has a response. A call
 * other than a GET is repeated only while the session is still the one in which this page first sent it, or its key.
 * ```ts
 * const response = await client.api('/trading/v1/options/accounts')
 * const { data } = await response.json()
 * ```
 * @throws ApiError unless the status is 2xx or 304, with the code `not_sent` if the browser reports that it is offline when
 * a call other than a GET is made, and `aborted` when you abort one that may have been sent; the reason of `signal` when you abort
 * any other
 */
export interface Api {
    <P extends ApiPath<'GET'>>(path: P, init?: ApiInit<'GET'>): Promise<ApiResponse<ResponseBody<'GET', P>>>;
    <M extends Exclude<Method, 'GET'>, P extends ApiPath<M>>(path: P, init: ApiInit<M, P> & {
        readonly method: M;
    }): Promise<ApiResponse<ResponseBody<M, P>>>;
}
/** Calls the API. A refusal because there is no session makes the store confirm that. */
export declare function apiOf(core: Core): Api;
export {};
