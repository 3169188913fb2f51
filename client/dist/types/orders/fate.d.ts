import type { SocketError } from '../core/base/errors.ts';
import { type Fate } from './search.ts';
/** Options of {@link fate}. */
export interface FateOptions {
    /** Stops looking. */
    readonly signal?: AbortSignal | undefined;
}
/**
 * Finds out what became of a `buy` whose outcome is unknown: looks at the account, and listens to its transactions until the
 * connection has been open for 15 seconds. Waits for a connection, and for the fate of earlier orders on the account. An equal order
 * from another tab or device at the same moment cannot be told apart.
 * ```ts
 * const found = await fate(error)
 * if (found.is === 'made') showContract(found.contract.contract_id)
 * ```
 * @throws SocketError if the account cannot be read: call it again later. TypeError unless the error is that of a `buy` which was
 * sent. The reason of `signal` when you abort
 */
export declare function fate(error: SocketError, { signal }?: FateOptions): Promise<Fate>;
