import { anyInstance, type Fault } from '../fault.ts'
import { onLinks } from '../whom.ts'

/** There is no way to the provider. */
export const refusedProvider: Fault = {
  name: 'refused-provider',
  sentence: 'Connections to the provider are refused, to one instance or to all.',
  apply(fleet, random) {
    const instances = random() < 0.5 ? fleet.instances : [anyInstance(fleet, random)]
    return {
      note: `the provider cannot be reached by ${instances.map(({ name }) => name).join(', ')}`,
      touches: [
        { kinds: ['login', 'signup'], results: ['provider_unavailable'] },
        { instances: instances.map(({ at }) => at), results: ['provider_unavailable'] },
      ],
      // The circuit stays open for up to so long after the last failure.
      settleMs: 5000,
      heal: onLinks(instances, 'provider', { refuses: true }),
    }
  },
}
