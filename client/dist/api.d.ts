import type { Paths } from './catalog.ts';
import { type CallInit } from './call.ts';
import type { Server } from './server.ts';
/** Paths that a deployment adds, such as that of the partner overview. Extend it by declaration merging. */
export interface MorePaths {
}
type Method = keyof Paths;
type PathOf<M extends Method> = Paths[M] | (M extends keyof MorePaths ? MorePaths[M] & string : never);
/** A path of a method, with or without a query. */
export type ApiPath<M extends Method = Method> = PathOf<M> | `${PathOf<M>}?${string}`;
/** A response whose JSON has the type that the caller gives it. */
export interface ApiResponse extends Omit<Response, 'json'> {
    json<T = unknown>(): Promise<T>;
}
/** What a call takes beside the path: everything that `fetch` does, and `json`, `timeoutMs`, `idempotencyKey`. */
export interface ApiInit<M extends Method> extends CallInit {
    readonly method?: M;
    /** The `Idempotency-Key` of the call; true makes a new one. */
    readonly idempotencyKey?: string | true;
}
/**
 * Calls the trading service through the server. `path` is that of the trading service, without `/api`.
 * @throws ApiError unless the status is 2xx or 304; the signal's reason when the caller aborted
 */
export interface Api {
    (path: ApiPath<'GET'>, init?: ApiInit<'GET'>): Promise<ApiResponse>;
    <M extends Exclude<Method, 'GET'>>(path: ApiPath<M>, init: ApiInit<M> & {
        readonly method: M;
    }): Promise<ApiResponse>;
}
/** @param onAnonymous told when a call was refused for lack of a session */
export declare function apiOf(server: Server, onAnonymous: () => void): Api;
export {};
