import { setTimeout as wait } from 'node:timers/promises'
import type { Fault } from '../fault.ts'
import type { Instance } from '../fleet.ts'
import type { Touch } from '../history.ts'
import { onLinks, withoutRedis } from '../whom.ts'
import { rolled } from './rolled-instance.ts'

/** The instance has the new tokens by then, and may have given up to save them in time. */
const ENDS_MS = { least: 200, most: 3000 }
/** Redis is silent for so much longer, which is less than a stop may take. */
const SILENT_MS = { least: 1000, most: 6000 }

/** An instance is told to end when it has new tokens that Redis does not have. */
export const rolledBeforeTokensAreSaved: Fault = {
  name: 'rolled-before-tokens-are-saved',
  sentence:
    'Redis falls silent for the instance that is the next to get new tokens. It ends after SIGTERM, Redis is back while it does, and it is started again later.',
  fits: ({ redis, refreshTokens, accessTokenSeconds }) =>
    redis === 'single' && refreshTokens && accessTokenSeconds < 60,
  lastsMs: { least: 9000, most: 16_000 },
  apply(fleet, random) {
    const touches: Touch[] = []
    let rolls: { readonly instance: Instance; readonly isOver: Promise<void> } | undefined
    const between = ({ least, most }: typeof ENDS_MS): number => least + random() * (most - least)
    const roll = async (instance: Instance): Promise<void> => {
      touches.push(...rolled(instance), ...withoutRedis([instance.at]))
      const end = onLinks([instance], 'redis', { holds: ['request', 'reply'] })
      await wait(between(ENDS_MS))
      instance.process.child.kill('SIGTERM')
      await wait(between(SILENT_MS))
      end()
    }
    const ends = fleet.instances.map((instance) =>
      onLinks([instance], 'provider', {
        of: (opening) => opening.startsWith('POST /oauth2/token ') && opening.includes('grant_type=refresh_token'),
        cuts(way) {
          if (way === 'reply') rolls ??= { instance, isOver: roll(instance) }
          return undefined
        },
      }),
    )
    return {
      note: 'an instance ends when it cannot save new tokens yet',
      touches,
      settleMs: 3000,
      async heal() {
        ends.forEach((end) => end())
        await rolls?.isOver
        await rolls?.instance.restart()
      },
    }
  },
}
