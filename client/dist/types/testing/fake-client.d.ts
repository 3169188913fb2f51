import { type Client } from '../core/client.ts';
import { type FakeServer } from './fake-server.ts';
import type { FakeSession } from './fake-session.ts';
/** Options of {@link createFakeClient}. */
export interface FakeOptions {
    /** Whose session the browser has at first; none by default. */
    readonly session?: FakeSession | undefined;
    /** The origin of the server in `loginUrl()`; one that no other client has by default, so that none counts as another tab. */
    readonly baseUrl?: string | undefined;
}
/** A client, and the server in memory that it talks to. `login()` and `signup()` leave the page where it is. */
export interface FakeClient extends Client {
    readonly server: FakeServer;
}
/**
 * Creates a client for tests of a page: the real one, at a server in memory that the test drives.
 * ```ts
 * const client = createFakeClient({ session: { subject: 'user-1' } })
 * client.server.respond('GET', '/trading/v1/options/accounts', { data: [] })
 * ```
 */
export declare function createFakeClient(options?: FakeOptions): FakeClient;
