// What browsers share: streams, answers, and who has which.
export { forgetAll, forgetStream, isKnownForgetAll } from './forgets.ts'
export { KeptBytes } from './kept-bytes.ts'
export { Reads } from './reads.ts'
export { Streams } from './streams.ts'
export { Subscriber } from './subscription.ts'
