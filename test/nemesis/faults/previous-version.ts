import { anyInstance, type Fault } from '../fault.ts'
import { previousVersion } from '../../support/server/previous-version.ts'
import { rolled } from './rolled-instance.ts'

/**
 * The fault that has one instance be of the version before this one, which cannot promise all that this one can: its audit lines have
 * no `instance` and `version` (`scanLog`), and it does not take over what a killed instance had to do after a logout
 * (`ended-is-revoked`). Everything else it has to keep, and let the others keep.
 */
export const PREVIOUS = 'previous-version'

/** One instance is of the version before, as during a roll. */
export const olderInstance: Fault = {
  name: PREVIOUS,
  sentence:
    'One instance ends after SIGTERM, and the previous version takes its place, as during a roll that stops half-way; later it is replaced in the same way.',
  // It goes by its own clock, which has to be right.
  fits: ({ clocks = [] }) => clocks.every((each) => each === 0 || each === 'sleeps'),
  leastRunMs: 60_000,
  lastsMs: { least: 12_000, most: 30_000 },
  async apply(fleet, random) {
    const instance = anyInstance(fleet, random)
    const folder = await previousVersion()
    if (folder === undefined)
      return {
        note: 'git does not have the previous version: nothing happens',
        touches: [],
        settleMs: 0,
        heal: () => undefined,
      }
    const replace = async (checkout: string): Promise<void> => {
      instance.process.child.kill('SIGTERM')
      instance.setCheckout(checkout)
      await instance.restart()
    }
    const replaced = replace(folder)
    return {
      note: `${instance.name} is of the previous version`,
      touches: rolled(instance),
      settleMs: 1000,
      async heal() {
        await replaced
        await replace(fleet.checkout)
      },
    }
  },
}
