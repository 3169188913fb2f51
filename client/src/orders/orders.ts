export type { FoundContract } from './contracts.ts'
export type { Fate } from './fate-shape.ts'
export { fate, type FateOptions } from './fate.ts'
export { orderOnce } from './once.ts'
