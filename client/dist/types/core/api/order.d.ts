import { ApiError, SocketError } from '../base/errors.ts';
import type { Core } from '../core.ts';
import { type CallInit } from './call.ts';
/** How to find out whether an order was made. */
export interface OnceOptions {
    /**
     * Looks whether the order was made, for example in a list, or asks the user. Called only when the outcome is unknown. Do not
     * guess: a wrong `false` may make the order twice. Without it, `fate` finds out what became of a `buy`, and the server what
     * became of a call with the key.
     */
    readonly isMade?: ((error: ApiError | SocketError) => boolean | Promise<boolean>) | undefined;
    /**
     * Keeps the key under this name in the `sessionStorage`, so that the same order after a reload gets the same key, and is not
     * made twice. Only an order with `json`, a string as body, or no body is kept.
     */
    readonly remember?: string | undefined;
}
/** A call of the API, as far as it is known before its key. */
export interface ApiCall extends CallInit {
    readonly method: string;
    readonly path: string;
}
/** What `once` and the calls that carry its key tell each other of an order. */
interface Order {
    /** Chooses what is sent in place of the key of `once`, or refuses the call by rejecting. */
    readonly chooseKey: ((core: Core, call: ApiCall, key: string) => Promise<string>) | undefined;
    /** True once a call with the key has begun. */
    isSent?: true;
    /** Whether such a call was answered or lost, by its last word: no error of anything else says that the order was not made. */
    mayBeMade?: boolean;
    /** A call without the key that began meanwhile. It cannot be told whether it belongs to the order. */
    other?: string;
    /** Whether the call that has failed with this error is to be sent once more: not if the machine slept before it failed. */
    readonly mayRepeat: (error: ApiError, hasSlept: boolean) => Promise<boolean>;
}
/** Notes a call that may change something. @returns the order that has given it its key, if any; all others learn of it */
export declare function noteCall(key: string | undefined, call: string): Order | undefined;
/**
 * Sends a call, and once more if it has the key of an order, its answer is lost, and the order was not made. That of an order must
 * arrive whole.
 */
export declare function sendInOrder(core: Core, call: ApiCall, key: string | undefined, send: (key: string | undefined, isWhole?: boolean) => Promise<Response>): Promise<Response>;
/** Makes an order as `once` does. */
export declare function makeOnce<Answer>(make: (key: string) => Promise<Answer>, isMade: NonNullable<OnceOptions['isMade']>, chooseKey?: Order['chooseKey']): Promise<Answer | undefined>;
/** A new `Idempotency-Key`. A page without TLS has no `crypto.randomUUID`. */
export declare function newKey(): string;
export {};
