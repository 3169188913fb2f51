import { type ActiveSession, type Notice } from '../core/client.ts';
/** A `Request` of the Fetch API, one of Node.js, or anything else with their headers. */
export interface RequestHeaders {
    readonly headers: Pick<Headers, 'get'> | Readonly<Record<string, string | readonly string[] | undefined>>;
}
/** Options of {@link sessionFor}. */
export interface SessionForOptions {
    /**
     * The origin of the server, e.g. `https://bff.example.com`, or its inside address. It comes from your settings and never from
     * the request: whoever chooses it gets the cookie of the user.
     */
    readonly baseUrl: string;
}
/** A session as the page will know it, with times that are comparable with `Date.now()` of the rendering server. */
export interface RenderedSession extends Omit<ActiveSession, 'expiring'> {
    readonly notice?: Notice | undefined;
}
/**
 * The session of the user for whom a server renders a page. Nothing but the session cookie is sent, and it does not count as use
 * of the session. Keep neither the result nor the page in a cache that another request can read.
 * ```ts
 * const session = await sessionFor(request, { baseUrl: settings.bffUrl })
 * ```
 * @returns null if nobody is logged in; undefined if this request cannot tell, because it comes from another site: browsers then
 * withhold the cookie, also when the user returns from the login. Render the page without the user, and leave it to its client; a
 * redirect to the login would loop
 * @throws ApiError if the server does not say within 2 seconds: the user may be logged in; TypeError if `baseUrl` is no address with
 * its scheme
 */
export declare function sessionFor({ headers }: RequestHeaders, { baseUrl }: SessionForOptions): Promise<RenderedSession | null | undefined>;
