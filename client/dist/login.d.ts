/** Log in or sign up. */
export type Flow = 'login' | 'signup';
/** Why a login did not succeed. A newer server may have more: treat those as `login_failed`. */
export type AuthErrorCode = 'access_denied' | 'state_mismatch' | 'invalid_grant' | 'invalid_client' | 'provider_unavailable' | 'try_later' | 'login_failed';
/** What a login starts with. */
export interface LoginOptions {
    /** Path of the page to come back to, with query and fragment; this page unless given. */
    readonly returnTo?: string;
    /** For a sign-up: `sidc`, `utm_campaign`, `utm_medium` and `utm_source` of a partner's link, unchanged, all or none. */
    readonly partner?: Readonly<Record<string, string>>;
}
/** A login that did not succeed, and where the user may try again. Let the user click: never go there by yourself. */
export interface AuthError {
    readonly code: AuthErrorCode | (string & {});
    readonly flow: Flow;
    /** The same again. */
    readonly againUrl: string;
    /** A login, also after a sign-up: the account may exist already. */
    readonly loginUrl: string;
}
/** The address that logs the user in, or signs them up, and brings them back. */
export declare function loginUrl(base: string, flow?: Flow, options?: LoginOptions): string;
/** Why the last login failed, if it did. Takes the code out of the address, so a second call finds nothing. */
export declare function takeAuthError(base: string): AuthError | undefined;
