// Streams and answers that browsers share, and which browser has which.
export { forgetAll, forgetStream, isKnownForgetAll } from './forget.ts'
export { CacheQuota } from './cache-quota.ts'
export { Reads } from './reads.ts'
export { Streams } from './streams.ts'
export { Subscriber } from './subscription.ts'
