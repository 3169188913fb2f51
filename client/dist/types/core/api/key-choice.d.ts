import type { ApiError } from '../base/errors.ts';
import type { Server } from '../base/server.ts';
import type { CallInit } from './call.ts';
/** A call that is about to be sent with the key that `once` has given its order. */
export interface KeyedCall {
    readonly server: Server;
    readonly path: string;
    readonly init: CallInit;
    /** Notes that a call with this key may have been sent before, which this page does not know. */
    readonly wasUsed: (key: string) => void;
    /** The error of a call that is not sent: with the outcome `unknown`, or with this code. */
    readonly refusal: (cause?: unknown, code?: 'not_sent') => ApiError;
}
/** Chooses the key with which a call is sent, or refuses the call by rejecting. */
export type KeyChoice = (call: KeyedCall) => Promise<string>;
/** By the key that `once` has given its order, where the order is remembered. */
export type KeyChoices = Map<string | undefined, KeyChoice>;
export declare const keyChoices: KeyChoices;
