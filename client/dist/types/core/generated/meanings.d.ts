/** Of every problem and every close of a socket: what happened, and what a page does about it. An empty code is none. */
export declare const MEANINGS: readonly {
    readonly code: string;
    readonly status?: number;
    readonly closes: readonly number[];
    readonly about: string;
    readonly advice: string;
}[];
