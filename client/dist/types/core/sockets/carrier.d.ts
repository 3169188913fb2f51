import type { SocketError } from '../base/errors.ts';
import type { Link } from './link.ts';
import type { Message } from './socket-status.ts';
/** A subscription at the trading service, which all its subscribers share. */
export interface Stream {
    readonly key: string;
    readonly message: Message;
    readonly subscribers: Set<{
        readonly listener: (message: Message) => void;
        readonly onError: (error: SocketError) => void;
    }>;
    carrier: Carrier;
    /** The `req_id` of the latest request for the stream; 0 before there is one. */
    id: number;
    hasReply: boolean;
    /** How often it has been refused in a row. */
    refusals: number;
    /** The subscription ids of the trading service. One request may open several. */
    readonly upstream: Set<string>;
}
/** A link, and the subscriptions on its present connection. */
export declare class Carrier {
    #private;
    readonly link: Link;
    constructor(link: Link, nextId: () => number);
    /** Forgets the subscriptions of a lost connection. */
    reset(): void;
    request(stream: Stream): void;
    /** Ends the present subscription of a stream. */
    retire({ id, upstream }: Stream): void;
    /** Finds the stream of a message, and notes its subscription. */
    take(message: Message): Stream | undefined;
}
