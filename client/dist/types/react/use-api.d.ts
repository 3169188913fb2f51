import type { ApiPath, ResponseBody } from '../core/api/api.ts';
import type { Client } from '../core/create-client.ts';
/** What a path of the API has returned. */
export interface ApiData<T> {
    /** The JSON of the latest response. It stays while the path is loaded again, and when that fails. */
    readonly data?: T | undefined;
    /** Why the latest call failed, usually an `ApiError`. If the reason may pass, the path is called again. */
    readonly error?: Error | undefined;
    /** True while a call is under way. */
    readonly isLoading: boolean;
    /** Calls the path again. It is the same function in every render. */
    readonly reload: () => void;
}
/**
 * Loads JSON with a GET, as soon as a user is logged in, and again when the path or the session changes. Then and when the component
 * is unmounted, a call that is under way is aborted. Nothing that was loaded in one session is shown in another.
 * ```tsx
 * const { data, error, isLoading, reload } = useApi(client, '/trading/v1/options/accounts')
 * ```
 * @param path a path of the trading service, with or without a query; undefined to load nothing
 */
export declare function useApi<P extends ApiPath<'GET'>>(client: Client, path: P | undefined): ApiData<ResponseBody<'GET', P>>;
/** The same with a type of your own for the JSON. The package does not check it. */
export declare function useApi<T>(client: Client, path: ApiPath<'GET'> | undefined): ApiData<T>;
