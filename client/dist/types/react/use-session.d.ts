import type { Client } from '../core/create-client.ts';
import { type SessionState } from '../core/session/session-state.ts';
/**
 * The session of the user. The component renders again after every change.
 * ```tsx
 * const session = useSession(client)
 * return session.status === 'active' ? <Account /> : <a href={client.session.loginUrl()}>Log in</a>
 * ```
 */
export declare function useSession({ session }: Pick<Client, 'session'>): SessionState;
/**
 * The key of the session. What was loaded under another key must not be shown, so the component renders again only when the key
 * changes.
 * @param isNeeded false for what concerns no user: then the session is not followed, and there is no key
 */
export declare function useSessionKey({ session }: Pick<Client, 'session'>, isNeeded: boolean): string | undefined;
