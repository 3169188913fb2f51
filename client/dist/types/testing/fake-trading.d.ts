import type { AnswerTo, Message, Operation, Operations, StreamOperation } from '../core/client.ts';
import type { FakeSocket } from './fake-socket.ts';
/** A message of the page. Pings are left out. */
export interface FakeMessage {
    readonly message: Message;
    /** The account of the trading socket; undefined for the public one. */
    readonly account: string | undefined;
}
/** The body of a message to the page: its own members, or why the trading service refuses. */
export type FakeBody<O extends Operation> = Partial<AnswerTo<{
    readonly [K in O]: unknown;
}>> | {
    readonly error: {
        readonly code: string;
        readonly message: string;
    };
};
/** What the trading service answers, or a function that is asked each time. If it returns nothing, no reply arrives. */
export type FakeReply<Body> = Body | ((message: Message, account: string | undefined) => Given<Body> | Promise<Given<Body>>);
type Given<Body> = Body | undefined | void;
/** Members of the request of a stream, of which its operation is one. */
export type StreamMembers<M> = [keyof M & StreamOperation] extends [never] ? never : M & Partial<Operations[keyof M & StreamOperation]['request']> & {
    readonly [K in Exclude<keyof M, Members<M>>]: never;
};
type Members<M> = keyof Operations[keyof M & StreamOperation]['request'];
/** The trading service behind the sockets: it replies as a test has told it to, and keeps streams until they are forgotten. */
export declare class FakeTrading {
    #private;
    readonly messages: FakeMessage[];
    reply(operation: string, reply: FakeReply<object>): void;
    push(members: object, body: object): number;
    /** Takes the messages of a connection. */
    accept(socket: FakeSocket): void;
    /** Ends the streams of a connection that has closed. */
    left(socket: FakeSocket): void;
}
export {};
