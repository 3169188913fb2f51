/**
 * Calls the listener once a second.
 * @returns a function that stops the calls
 */
export declare function onTick(listener: (hasJumped: boolean) => void): () => void;
/** The time since a moment. A clock that was set back counts like one that was set forward, or a timeout would never end. */
export declare function elapsedMs(since: number): number;
/** Waits for an answer. @returns whether the machine slept meanwhile: the answer may arrive before the next tick, or after it */
export declare function sleptDuring(answer: unknown): Promise<boolean>;
