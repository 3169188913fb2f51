import { anyInstance, type Fault } from '../fault.ts'

/** The way to Redis is silent for one instance. */
export const heldRedis: Fault = {
  name: 'held-redis',
  sentence: 'The connections of one instance to Redis stay open, and nothing passes on them in either direction.',
  fits: ({ redis }) => redis === 'single',
  apply(fleet, random) {
    const { at, name, links } = anyInstance(fleet, random)
    return {
      note: `${name} hears nothing of Redis`,
      touches: [
        { instances: [at] },
        // Whoever waits for the one that renews the session's tokens.
        { results: ['provider_unavailable'] },
      ],
      settleMs: 5000,
      heal: links.redis?.add({ holds: ['request', 'reply'] }) ?? (() => undefined),
    }
  },
}
