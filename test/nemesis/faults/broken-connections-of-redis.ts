import type { Fault } from '../fault.ts'
import { tellRedis, withoutRedis } from '../whom.ts'

/** Redis closes all connections, and takes new ones. */
export const brokenConnectionsOfRedis: Fault = {
  name: 'broken-connections-of-redis',
  sentence:
    'Redis closes the connections of all instances at the same moment (CLIENT KILL), and takes new ones at once.',
  fits: ({ redis }) => redis === 'single',
  lastsMs: { least: 0, most: 0 },
  async apply(fleet) {
    await tellRedis(fleet, ['CLIENT KILL TYPE normal', 'CLIENT KILL TYPE pubsub'])
    // The instances reconnect within a second.
    return { note: 'all connections are closed', touches: withoutRedis(), settleMs: 1500, heal: () => undefined }
  },
}
