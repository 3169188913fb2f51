import type { Debugged } from '../core/create-client.ts';
import type { Client, SocketStatus } from '../core/client.ts';
import type { Faults } from './faults.ts';
import type { Traffic } from './traffic.ts';
/** A socket that the page has opened and not closed. */
interface PageSocket {
    readonly path: string;
    readonly status: () => SocketStatus;
    /** How many requests and commands have not ended. */
    waiting: number;
}
/** Who has told the client of its session last, and when. */
interface Source {
    readonly name: string;
    readonly at: number;
}
/** A client whose calls, connections and sockets the devtools see. */
export declare class ObservedClient {
    #private;
    readonly client: Client;
    readonly sockets: Set<PageSocket>;
    /** @param onClose called when the page closes the client */
    constructor([client, server]: Debugged, traffic: Traffic, faults: Faults, onChange: () => void, onClose: () => void);
    /** Who has told the client of the state that it has now. */
    get source(): Source;
}
export {};
