import { type Faults, type FaultySocket } from './faults.ts';
import { type Traffic } from './traffic.ts';
/** The members of a WebSocket that the package uses. */
type Used = 'readyState' | 'bufferedAmount' | 'onopen' | 'onmessage' | 'onclose' | 'send' | 'close';
/** A WebSocket of the client. It notes what passes, and makes of it what the faults demand. */
export declare class ObservedSocket implements Pick<WebSocket, Used>, FaultySocket {
    #private;
    onopen: WebSocket['onopen'];
    onmessage: WebSocket['onmessage'];
    onclose: WebSocket['onclose'];
    /** @param open opens the real socket; it may throw */
    constructor(open: () => WebSocket, path: string, traffic: Traffic, faults: Faults, onSession: () => void);
    /** As the page has been told: what the real socket has done since may be on its way. */
    get readyState(): WebSocket['readyState'];
    get bufferedAmount(): number;
    send(text: string): void;
    close(): void;
    freeze(): void;
    thaw(): void;
    endSession(): void;
}
export {};
