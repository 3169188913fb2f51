import type { Fault } from '../fault.ts'
import { NAMED } from '../fleet-names.ts'

/** The name server does not answer about a peer. */
export const silentNames: Fault = {
  name: 'silent-names',
  sentence: 'The name of the provider, or that of the trading service, is not resolved for any instance.',
  fits: ({ isNamed }) => isNamed === true,
  apply({ names }, random) {
    const peer = NAMED[Math.floor(random() * NAMED.length)] ?? 'provider'
    return {
      note: `the name server is silent about the ${peer}`,
      // The addresses that it named last serve after a second.
      touches: [],
      settleMs: 1000,
      heal: names.silence(peer),
    }
  },
}
