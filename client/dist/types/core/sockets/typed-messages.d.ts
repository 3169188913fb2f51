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
/** The members of `M` with the types of `R`, and `never` for each that `R` does not have. */
type Exact<M, R> = R extends (infer Item)[] ? readonly Item[] : R extends object ? {
    readonly [K in keyof M]: K extends keyof R ? Exact<M[K], R[K]> : never;
} & R : R;
/** A message that is as its operation is described: `never` for an operation or a member that upstream does not know. */
export type Described<M, O extends Operation = Operation> = [OperationOf<M>] extends [never] ? never : [OperationOf<M>] extends [O] ? Exact<M, Operations[OperationOf<M>]['request']> : never;
/** A message whose operation is not described. Give the type of its answer by hand. */
export type Undescribed<T> = [T] extends [never] ? never : {
    readonly [O in Operation]?: never;
} & Message;
export {};
