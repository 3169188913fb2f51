// A stream begins with its first browser. It ends when upstream refuses or ends it, and some time after its last browser: at once if
// upstream was never asked for it, after a minute if upstream does not answer, and otherwise once it has lingered, or when
// another stream needs its place. A lost connection ends no stream that browsers may come back to.
export { forgetAll, isKnownForgetAll } from './forget.ts'
export { Reads } from './reads.ts'
export { CacheQuota } from './shared-answer.ts'
export { Streams } from './streams.ts'
export { Subscriber } from './subscription.ts'
