/** What can be tried out in a page: a fault of the network or of the server, invented in this page alone. */
export type Fault = 'offline' | 'slow' | 'lostAnswer' | 'sessionEnded';
/** How late everything arrives with the fault `slow`. */
export declare const SLOW_MS = 2000;
/** A socket that faults concern. */
export interface FaultySocket {
    /** Nothing arrives any more, in either direction. Nobody is told. */
    freeze(): void;
    /** The browser notices that a frozen connection is gone. */
    thaw(): void;
    /** The server closes the socket because the session has ended, if the socket needs one. */
    endSession(): void;
}
/** The faults that are on, and the sockets that they concern. */
export declare class Faults {
    #private;
    constructor(onChange: () => void);
    has(fault: Fault): boolean;
    /** Applies to a socket until the function that is returned is called. */
    watch(socket: FaultySocket): () => void;
    set(fault: Fault, isOn: boolean): void;
    /** Takes the one answer that is to be lost. @returns whether there is one */
    takeLostAnswer(): boolean;
}
