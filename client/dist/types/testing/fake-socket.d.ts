import { type FakeNetwork } from './fake-network.ts';
/** Both ends of a WebSocket: that of the page has the names of the browser. */
export declare class FakeSocket {
    #private;
    /** As in a browser: 0 connecting, 1 open, 3 closed. */
    readyState: 0 | 1 | 3;
    readonly bufferedAmount = 0;
    onopen: (() => void) | null;
    onmessage: ((event: {
        readonly data: string;
    }) => void) | null;
    onclose: ((event: {
        readonly code: number;
        readonly reason: string;
    }) => void) | null;
    /** Called with every message of the page. */
    onText: (text: string) => void;
    /** Called when either side has closed the connection. */
    onGone: () => void;
    readonly path: string;
    constructor(network: FakeNetwork, url: string);
    /** The account of a trading socket; undefined for any other. */
    get account(): string | undefined;
    send(text: string): void;
    close(): void;
    /** Opens the connection for the page. */
    open(): void;
    /** Sends a message to the page. */
    deliver(message: object): void;
    /** Closes the connection. The page reconnects at once where nothing asks for a delay. */
    end(code: number, reason: string): void;
}
