export type { FoundContract } from './contracts.ts';
export { fate, type FateOptions } from './fate.ts';
export { orderOnce } from './once.ts';
export type { Fate } from './search.ts';
