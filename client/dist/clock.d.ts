/** Calls the listener once a second. @returns what ends it */
export declare function onTick(listener: (hasJumped: boolean) => void): () => void;
