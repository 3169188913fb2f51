/**
 * Calls the listener once a second.
 * @returns a function that stops the calls
 */
export declare function onTick(listener: (hasJumped: boolean) => void): () => void;
