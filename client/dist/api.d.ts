import type { Paths } from './catalog.ts';
import { type CallInit } from './call.ts';
import type { Server } from './server.ts';
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
type Method = keyof Paths;
type PathOf<M extends Method> = Paths[M] | (M extends keyof MorePaths ? MorePaths[M] & string : never);
/** A path of the API for a method, with or without a query. */
export type ApiPath<M extends Method = Method> = PathOf<M> | `${PathOf<M>}?${string}`;
/** A `Response` whose `json()` returns the type that you give it. The package does not check the body against it. */
export interface ApiResponse extends Omit<Response, 'json'> {
    json<T = unknown>(): Promise<T>;
}
/** The options of `fetch`, and `json`, `timeoutMs` and `idempotencyKey`. */
export interface ApiInit<M extends Method> extends CallInit {
    readonly method?: M;
    /** The `Idempotency-Key` header of the call; `true` makes a new key. */
    readonly idempotencyKey?: string | true;
}
/**
 * Calls the trading service through the server. `path` is a path of the trading service, without `/api`. The call
 * carries the session cookie and `X-CSRF`. It is repeated once after `credential_renewed` and `upstream_unreachable`,
 * which mean that it was not executed, and a GET also after `shutting_down`.
 * ```ts
 * const response = await client.api('/trading/v1/options/accounts')
 * const accounts = await response.json<Accounts>()
 * ```
 * @throws ApiError unless the status is 2xx or 304; the reason of `signal` when you abort
 */
export interface Api {
    (path: ApiPath<'GET'>, init?: ApiInit<'GET'>): Promise<ApiResponse>;
    <M extends Exclude<Method, 'GET'>>(path: ApiPath<M>, init: ApiInit<M> & {
        readonly method: M;
    }): Promise<ApiResponse>;
}
/** @param onAnonymous called when the server refuses a call because there is no session */
export declare function apiOf(server: Server, onAnonymous: () => void): Api;
export {};
