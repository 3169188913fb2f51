import { askRedis } from '../support/redis/topologies.ts'
import { until } from '../support/time/until.ts'
import type { Fleet, Instance } from './fleet.ts'
import type { Touch } from './history.ts'
import { headerOf, type SeenRequest } from './http.ts'
import type { Behaviour } from './link.ts'

/** One of these. */
export function oneOf<Item>(items: readonly Item[], random: () => number): Item {
  return items[Math.floor(random() * items.length)] as Item
}

/** So many of the users who have acted. */
export function someUsers({ observer: { history } }: Fleet, random: () => number, count: number): readonly string[] {
  const users = [...new Set(history.calls.map(({ user }) => user))].sort()
  return users
    .map((user) => ({ user, rank: random() }))
    .sort((one, other) => one.rank - other.rank)
    .slice(0, count)
    .map(({ user }) => user)
}

/** The user of a token or a code of the provider; undefined before their page has made use of it. */
function userOf({ provider, observer: { history } }: Fleet, secret: string): string | undefined {
  const session = provider.grantOf(secret)
  return session === undefined ? undefined : history.calls.find((call) => call.session === session)?.user
}

/** Whose tokens a request to the provider renews; undefined if it does not, or they are not known. */
export function refreshedBy(fleet: Fleet, { path, body }: SeenRequest): string | undefined {
  const token = path === '/oauth2/token' ? new URLSearchParams(body).get('refresh_token') : null
  return token === null ? undefined : userOf(fleet, token)
}

/** Whose token a call of upstream carries; undefined if it carries none, or they are not known. */
export function calledBy(fleet: Fleet, { head }: SeenRequest): string | undefined {
  return userOf(fleet, headerOf(head, 'authorization')?.replace('Bearer ', '') ?? '')
}

/** Links of these instances to a peer behave so. @returns ends that */
export function onLinks(
  instances: readonly Instance[],
  peer: 'redis' | 'provider' | 'upstream',
  behaviour: Behaviour,
): () => void {
  const ends = instances.map(({ links }) => links[peer]?.add(behaviour))
  return () => ends.forEach((end) => end?.())
}

/** Has the single Redis run commands, for as long as it takes. @param password of the default user, if it has one */
export async function tellRedis(
  { redis }: Fleet,
  commands: readonly (string | readonly string[])[],
  password?: string,
): Promise<void> {
  const url = password === undefined ? redis.url : redis.url.replace('://', `://:${password}@`)
  for (const command of commands) {
    const words = typeof command === 'string' ? command.split(' ') : command
    await until(async () => (await askRedis({ url }, words)) !== undefined, words.join(' '))
  }
}

/** What pages may be told while one instance, or all of them, cannot use Redis (docs/operating/redis.md, Without Redis). */
export function withoutRedis(instances?: readonly number[]): Touch[] {
  const where = instances && { instances }
  return [
    // An answer may come late, when the instance has given up waiting for Redis.
    { ...where, results: ['session_store_unavailable', 'ok'] },
    { ...where, kinds: ['login', 'signup'], results: ['try_later'] },
    // Each process has only its part of what the budget sets aside.
    { ...where, results: ['upstream_budget'] },
    // Whoever waits for the one that renews the session's tokens.
    { results: ['provider_unavailable'] },
  ]
}

/** After a restart or a failover nothing of the budget is granted for 15 s but what instances hold. */
export const BUDGET_IS_NEW: Touch = { results: ['upstream_budget'], settleMs: 20_000 }

/** What pages may be told after Redis has lost what was written last: a session that has just begun, or its renewed tokens. */
export const WRITES_ARE_LOST: readonly Touch[] = [
  BUDGET_IS_NEW,
  { results: ['session_expired', 'login_required'] },
  { kinds: ['login', 'signup'], results: ['state_mismatch', 'login_failed'] },
]

/**
 * Browsers whose streams were lost are closed at random moments of ten seconds, which begin five after the loss at the latest. Until
 * then nothing comes.
 */
export function lostStreams({ at }: Instance): Touch {
  return { instances: [at], kinds: ['socket'], results: ['upstream_lost', 'silent'], settleMs: 18_000 }
}

/** What pages may be told while nothing passes between an instance and upstream in one direction or in both. */
export function withoutUpstream(instance: Instance): Touch[] {
  const instances = [instance.at]
  return [
    {
      instances,
      kinds: ['read', 'order', 'socket'],
      results: ['ok', 'upstream_timeout', 'upstream_lost', 'upstream_unreachable'],
    },
    // A login waits for three seconds to learn whose the session is, and goes on without.
    { instances, kinds: ['login', 'signup'], results: ['ok'] },
    lostStreams(instance),
  ]
}
