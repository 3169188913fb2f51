/** @throws Error in a production build, for an entry that is for something else */
export declare function refuseProduction(entry: string, purpose: string): void;
