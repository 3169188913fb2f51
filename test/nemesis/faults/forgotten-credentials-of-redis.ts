import type { Fault } from '../fault.ts'
import type { Fleet } from '../fleet.ts'
import type { Behaviour } from '../link.ts'
import { onLinks, tellRedis, withoutRedis } from '../whom.ts'

const USER = 'nemesis'
const [KNOWN, FORGOTTEN] = ['known-then', 'forgotten!'] as const
const SLOW_MS = 30
/** Of a connection that is open. One that opens has its credentials in HELLO. */
const AUTH = '*3\r\n$4\r\nAUTH\r\n'
/** The reply to AUTH. Without one of any other command, all that come after it would be those of other commands. */
const REFUSAL = /-WRONGPASS[^\r\n]*\r\n/g

/** Redis takes new credentials at first, and refuses them a moment later. */
export const forgottenCredentialsOfRedis: Fault = {
  name: 'forgotten-credentials-of-redis',
  sentence:
    'The instances get another user of Redis, which knows it when they try, and refuses it on their open connections. As Redis 7.2 to 8.0 do, it sends no reply to a refusal among other replies.',
  fits: ({ redis }) => redis === 'single',
  lastsMs: { least: 6000, most: 9000 },
  async apply(fleet) {
    await tellRedis(fleet, [`ACL SETUSER ${USER} reset on >${KNOWN} ~* &* +@all`])
    const before = urlsOf(fleet, '')
    change(fleet, urlsOf(fleet, `${USER}:${KNOWN}@`))
    const end = onLinks(fleet.instances, 'redis', forgetting())
    return {
      note: `Redis refuses ${USER} on open connections`,
      // They go on as they were. One whose replies come too late is opened again.
      touches: withoutRedis(),
      settleMs: 2000,
      heal() {
        end()
        change(fleet, before)
      },
    }
  },
}

/** What waits arrives together, so that the refusal is among other replies unless it was asked for alone. */
function forgetting(): Behaviour {
  return {
    slowMs: SLOW_MS,
    rewrites(way, bytes) {
      const text = bytes.toString('latin1')
      if (way === 'request') return text.includes(AUTH) ? Buffer.from(text.replace(KNOWN, FORGOTTEN), 'latin1') : bytes
      const others = text.replace(REFUSAL, '')
      return others === '' || others === text ? bytes : Buffer.from(others, 'latin1')
    },
  }
}

function urlsOf({ instances }: Fleet, access: string): string[] {
  return instances.map(({ links }) => `redis://${access}127.0.0.1:${links.redis?.port}`)
}

function change({ instances }: Fleet, urls: readonly string[]): void {
  for (const [at, { secrets }] of instances.entries()) secrets.change({ REDIS_URL: urls[at] ?? '' })
}
