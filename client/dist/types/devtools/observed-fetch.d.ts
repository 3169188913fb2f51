import type { Debugged } from '../core/create-client.ts';
import { type Faults } from './faults.ts';
import type { Call, Traffic } from './traffic.ts';
/** How the client calls its server. */
type Fetch = Debugged[1]['fetch'];
/** Calls the server, notes what becomes of each call, and makes of it what the faults demand. */
export declare function observedFetch(fetch: Fetch, traffic: Traffic, faults: Faults, onAuth: (call: Call) => void): Fetch;
export {};
