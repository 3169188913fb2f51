/** What happened, and what a page does about it. */
export interface Meaning {
    readonly code: string;
    readonly about: string;
    readonly advice: string;
}
/** The meaning of a response that is no success. @param code that of its problem, if it has one */
export declare function problemMeaning(status: number, code: string | undefined, detail?: string): Meaning;
/** The meaning of a close frame, or of a connection that was lost without one. */
export declare function closeMeaning(code: number, full: string): Meaning;
