import type { Fault } from '../fault.ts'
import { onLinks } from '../whom.ts'

/** The network forgets connections to the provider. */
export const forgottenConnections: Fault = {
  name: 'forgotten-connections',
  sentence: 'A connection to the provider on which a response has come takes nothing more, and stays open.',
  apply: ({ instances }) => ({
    note: 'the network forgets connections to the provider',
    // Each request has a connection of its own.
    touches: [],
    settleMs: 0,
    heal: onLinks(instances, 'provider', { forgets: true }),
  }),
}
