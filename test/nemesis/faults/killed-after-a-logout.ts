import type { Fault } from '../fault.ts'
import type { Instance } from '../fleet.ts'
import type { Touch } from '../history.ts'
import { touchedBy } from './killed-instance.ts'

const REVOCATION = '/oauth2/revoke'

/** An instance dies between the end of a session and what has to follow it. */
export const killedAfterALogout: Fault = {
  name: 'killed-after-a-logout',
  sentence:
    'The instance that is the next to revoke the tokens of a session that has ended is killed before the provider has heard of it, and is started again later.',
  lastsMs: { least: 6000, most: 14_000 },
  apply(fleet) {
    let killed: { readonly instance: Instance; readonly isDead: Promise<void> } | undefined
    const touches: Touch[] = []
    const ends = fleet.instances.map((instance) =>
      instance.links.provider.add({
        answers({ path }) {
          if (path !== REVOCATION || (killed !== undefined && killed.instance !== instance)) return undefined
          if (killed === undefined) {
            touches.push(...touchedBy(instance, fleet))
            killed = { instance, isDead: instance.kill() }
          }
          // What it has sent is lost with it.
          return ''
        },
      }),
    )
    return {
      note: 'an instance is killed before it revokes the tokens of an ended session',
      touches,
      settleMs: 1000,
      async heal() {
        ends.forEach((end) => end())
        await killed?.isDead
        await killed?.instance.restart()
      },
    }
  },
}
