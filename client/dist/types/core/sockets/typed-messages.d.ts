import type { Operations } from '../generated/messages.ts';
import type { Message } from './socket-status.ts';
/** The name of an operation that is described (docs/asyncapi.yaml of the server). */
export type Operation = keyof Operations;
/** The operation of a message: its member that names one. */
type OperationOf<M> = Extract<keyof M, Operation>;
/** The operations that have streams. `buy` changes something, so it is always a command. */
export type StreamOperation = {
    [O in Operation]: 'subscribe' extends keyof Operations[O]['request'] ? Exclude<O, 'buy'> : never;
}[Operation];
/** What upstream answers to a message. */
export type AnswerTo<M> = Operations[OperationOf<M>]['answer'];
/** Takes no value. A compiler names it where a message has an operation that is not described. */
export interface UnknownOperation<Name> {
    readonly [no]: Name;
}
/** Takes no value. A compiler names it where a message has a member that its operation does not have. */
export interface UnknownMember<Name> {
    readonly [no]: Name;
}
declare const no: unique symbol;
/** The members of `M` with the types of `R`, and for each that `R` does not have a type that names it. */
type Exact<M, R> = R extends (infer Item)[] ? readonly Item[] : R extends object ? {
    readonly [K in keyof M]: K extends keyof R ? Exact<M[K], R[K]> : UnknownMember<K>;
} & R : R;
/** A message that is as its operation is described. */
export type Described<M, O extends Operation = Operation> = [OperationOf<M>] extends [never] ? {
    readonly [K in keyof M]: UnknownOperation<K>;
} : [OperationOf<M>] extends [O] ? Exact<M, Operations[OperationOf<M>]['request']> : {
    readonly [K in OperationOf<M>]: UnknownOperation<K>;
};
/** `M` itself if it is as described, so that it is inferred; otherwise what it should be, which a compiler compares it with. */
export type Checked<M, O extends Operation = Operation> = [M] extends [Described<M, O>] ? M : Described<M, O>;
/** A message whose operation is not described. Give the type of its answer by hand. */
export type Undescribed<T> = [T] extends [never] ? never : {
    readonly [O in Operation]?: never;
} & Message;
export {};
