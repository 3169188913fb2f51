import { type Meaning } from './meaning.ts';
/** A call of the server. */
export interface Call {
    readonly id: number;
    readonly at: number;
    readonly method: string;
    readonly path: string;
    status: number | 'pending' | 'no response';
    tookMs?: number;
    requestId?: string | null;
}
/** A message on a socket. */
export interface Frame {
    readonly id: number;
    readonly at: number;
    readonly connection: number;
    readonly path: string;
    readonly direction: 'in' | 'out';
    readonly text: string;
    /** What it is about: its type, or the operation that it asks for. */
    readonly name: string;
}
/** A refusal, a failure or a lost connection, and what it means. */
export interface Trouble extends Meaning {
    readonly id: number;
    readonly at: number;
    /** Where it happened, such as `POST /api/…`. */
    readonly where: string;
    readonly requestId?: string | undefined;
}
/** A subscription on a connection. */
interface StreamSeen {
    readonly message: string;
    received: number;
    readonly upstream: Set<string>;
}
/** A connection, from its start to its end. */
export interface Connection {
    readonly id: number;
    readonly path: string;
    readonly startedAt: number;
    state: 'connecting' | 'open' | 'closed';
    code?: number;
    reason?: string;
    received: number;
    sent: number;
    /** By `req_id`. */
    readonly streams: Map<number, StreamSeen>;
    /** The operations that have no answer yet, by `req_id`. */
    readonly unanswered: Map<number, string>;
    /** How many bytes the browser has not sent yet. */
    readonly bufferedAmount: () => number;
}
/** A message, as far as the panel reads it. */
interface Parsed {
    readonly [member: string]: unknown;
    readonly req_id?: number;
    readonly msg_type?: string;
    readonly event?: string;
    readonly subscribe?: unknown;
    readonly forget?: string;
    readonly error?: {
        readonly code?: string;
        readonly message?: string;
    };
    readonly subscription?: {
        readonly id?: string;
    };
}
/** What a page sends and receives. It is kept in the memory of the page alone, and only as far as the panel shows it. */
export declare class Traffic {
    #private;
    /** Each newest first. */
    readonly calls: Call[];
    readonly frames: Frame[];
    readonly troubles: Trouble[];
    readonly connections: Connection[];
    constructor(onChange: () => void);
    call(method: string, path: string): Call;
    /** Notes what has changed in a call or a connection. */
    changed(): void;
    /** Notes a refusal of a call. */
    refused({ method, path, requestId }: Call, status: number, code: string | undefined, detail?: string): void;
    /** Notes a call without a response. */
    lost({ method, path }: Call): void;
    connection(path: string, bufferedAmount: () => number): Connection;
    /** Notes the end of a connection. @param code undefined if the page has closed it itself */
    closed(connection: Connection, code?: number, reason?: string): void;
    frame(connection: Connection, direction: Frame['direction'], data: unknown): void;
    clear(): void;
}
/** The message in a text; an empty one if there is none. */
export declare function parsed(text: string): Parsed;
export {};
