import type { Debugged } from '../core/create-client.ts';
import { Faults, type Fault } from './faults.ts';
import { ObservedClient } from './observed-client.ts';
import { Traffic } from './traffic.ts';
/** What the devtools know of this page, and what they do to it. Every panel shows the same. */
export declare class DevtoolsState {
    #private;
    readonly clients: Set<ObservedClient>;
    readonly traffic: Traffic;
    readonly faults: Faults;
    constructor();
    /** Calls the listener after every change. @returns a function that stops the calls */
    subscribe(listener: () => void): () => void;
    add(debugged: Debugged): void;
    /** Turns a fault on or off. Where it concerns the session, the clients ask for that at once. */
    setFault(fault: Fault, isOn: boolean): void;
}
