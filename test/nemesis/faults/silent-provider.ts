import type { Fault } from '../fault.ts'

/** The provider does not answer the servers. Its pages go on. */
export const silentProvider: Fault = {
  name: 'silent-provider',
  sentence: 'Requests of all instances to the provider are taken, and not answered for a while.',
  apply({ instances }) {
    const ends = instances.map(({ links }) => links.provider.add({ holds: ['request', 'reply'] }))
    return {
      note: 'the provider is silent',
      touches: [{ kinds: ['login', 'signup'] }, { results: ['provider_unavailable'] }],
      // The circuit stays open for up to so long after the last failure.
      settleMs: 5000,
      heal: () => ends.forEach((end) => end()),
    }
  },
}
