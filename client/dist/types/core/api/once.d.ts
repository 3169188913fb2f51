import { ApiError, SocketError } from '../base/errors.ts';
import type { CallInit } from './call.ts';
/** How to find out whether an order was made. */
export interface OnceOptions {
    /**
     * Looks whether the order was made, for example in a list, or asks the user. Called only when the outcome is unknown. Do not
     * guess: a wrong `false` may make the order twice. Without it, `fate` finds out what became of a `buy`, and the server what
     * became of a call with the key.
     */
    readonly isMade?: (error: ApiError | SocketError) => boolean | Promise<boolean>;
    /**
     * Keeps the key under this name in the `sessionStorage`, so that the same order after a reload gets the same key, and is not
     * made twice. Only an order with `json`, a string as body, or no body is kept.
     */
    readonly remember?: string;
}
/** What the calls of `api` and the order that has given them its key tell each other. */
interface Order {
    /** True once a call with the key has begun. */
    isSent: boolean;
    /** Whether such a call was answered or lost, by its last word: no error of anything else says that the order was not made. */
    mayBeMade: boolean;
    /** A call without the key that began meanwhile. It cannot be told whether it belongs to the order. */
    other: string | undefined;
    /** Whether the call that has failed with this error is to be sent once more. */
    readonly mayRepeat: (error: ApiError) => Promise<boolean>;
}
/** Notes a call that may change something. @returns the order that has given it its key, if any; all others learn of it */
export declare function noteCall(key: string | undefined, call: string): Order | undefined;
/**
 * Sends a call, and once more if it has the key of an order, its answer is lost, and the order was not made. That of an order must
 * arrive whole.
 */
export declare function sendInOrder(send: () => Promise<Response>, key: string | undefined, { method, path, signal, body }: CallInit & {
    readonly method: string;
    readonly path: string;
}): Promise<Response>;
/** The response of a call. */
type AnyResponse = Omit<Response, 'json'>;
/** Refuses an order that takes no key and returns a response: its call has another key, or none. A command on a socket has no key. */
type Keyed<MakesOrder extends (idempotencyKey: string) => unknown> = Parameters<MakesOrder> extends [] ? Unless<Awaited<ReturnType<MakesOrder>>, AnyResponse> : unknown;
type Unless<Answer, Refused> = [Answer] extends [never] ? unknown : [Answer] extends [Refused] ? never : unknown;
/**
 * Makes an order at most once, and finds out what became of it when no answer arrives. `order` gets a new `Idempotency-Key`, must
 * send it with its call, and does nothing else but read the answer. If the answer does not arrive whole and the order was not
 * made, the call is sent once more with the same key. A call that did not carry the key is never sent again.
 * ```ts
 * const response = await once((idempotencyKey) => client.api(path, { method: 'POST', json, idempotencyKey }), {
 *   isMade: () => confirm('Is the transfer in the list?'),
 * })
 * ```
 * @returns the answer; undefined if the order was made, and its answer is lost
 * @throws the error of the order. With the outcome `unknown` it may still be made, and the key is lost: look before you
 * order again. Its `detail` says if it was not repeated because it had forgotten the key. An error that is neither an ApiError nor
 * a SocketError, one of `isMade`, and one after the answer is the `cause` of an ApiError.
 */
export declare function once<Answer, MakesOrder extends (idempotencyKey: string) => unknown = (key: string) => unknown>(order: ((idempotencyKey: string) => Promise<Answer>) & MakesOrder & Keyed<MakesOrder>, options?: OnceOptions): Promise<Answer | undefined>;
/** A new `Idempotency-Key`. A page without TLS has no `crypto.randomUUID`. */
export declare function newKey(): string;
export {};
