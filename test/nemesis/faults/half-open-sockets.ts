import { anyInstance, type Fault } from '../fault.ts'
import { lostStreams, onLinks } from '../whom.ts'

/** Sockets of upstream are open and silent. */
export const halfOpenSockets: Fault = {
  name: 'half-open-sockets',
  sentence: 'The sockets of one instance to upstream stay open, and nothing comes from them; its calls go on.',
  lastsMs: { least: 3000, most: 20_000 },
  apply(fleet, random) {
    const instance = anyInstance(fleet, random)
    return {
      note: `${instance.name} hears nothing on the sockets of upstream`,
      touches: [{ instances: [instance.at], kinds: ['socket'] }, lostStreams(instance)],
      settleMs: 2000,
      heal: onLinks([instance], 'upstream', {
        of: (opening) => /^upgrade: websocket/im.test(opening),
        holds: ['reply'],
      }),
    }
  },
}
