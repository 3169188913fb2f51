/**
 * What a network does to everything that is sent.
 * - `up`: it arrives.
 * - `silent`: nothing arrives until the network is up again. Nobody is told.
 * - `down`: calls fail and connections close.
 * - `offline`: the same, and the browser reports that it is offline.
 */
export type NetworkState = 'up' | 'silent' | 'down' | 'offline';
/** The network between a page and its server. */
export declare class FakeNetwork {
    #private;
    get state(): NetworkState;
    /** Calls `pass` as soon as something arrives, or `lose` once the network is down. */
    carry(pass: () => void, lose: () => void): void;
    /** Changes the state, and tells the page what a browser would tell it. */
    set(state: NetworkState): void;
}
/** Calls back while no delay is random, so that what the client would do within a second it does at once. */
export declare function withoutDelay(call: () => void): void;
