// Streams and answers that browsers share, and which browser has which.
export { forgetAll, forgetStream, isKnownForgetAll } from './forget.ts'
export { CacheQuota, Reads } from './reads.ts'
export { Streams } from './streams.ts'
export { Subscriber } from './subscription.ts'
