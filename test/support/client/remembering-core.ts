import type { Test } from 'tap'
import type { ApiCall } from '../../../client/src/core/api/order.ts'
import { ApiError } from '../../../client/src/core/base/errors.ts'
import type { Core } from '../../../client/src/core/core.ts'
import type { SessionBody } from '../../../client/src/core/session/session-state.ts'
import { RememberedKey } from '../../../client/src/orders/remembered-key.ts'
import { replace } from '../time/replace.ts'

/** When orders are made. */
export const NOW = 1_700_000_000_000
export const CALL: ApiCall = { method: 'POST', path: '/orders', json: { amount: 1 } }
/** Where that call is kept under the name `order`. Pages that are open keep it there, so it must stay. */
export const PLACE = 'trading-bff:order:order:hofb0a-yhhfvp'

/** The session of a user. */
export function sessionOf(changes: object = {}): SessionBody {
  const times = { now: 0, expires_at: 900, idle_expires_at: 800 }
  return { authenticated: true, ...times, scope: '', session: 'A', subject: 'user', ...changes }
}

/** A page that remembers keys, whose session, clock and storage a test sets. */
export function rememberingPage(t: Test) {
  const kept = new Map<string, string>()
  const world = {
    now: NOW,
    session: sessionOf() as SessionBody | undefined,
    isStorageForbidden: false,
    /** The keys that were noted as used, and what else was asked for. */
    log: [] as unknown[],
    /** How long the answer of the server takes. */
    answerMs: 0,
    ask: (): Promise<unknown> => Promise.resolve(undefined),
  }
  const allowed = (): void => {
    if (world.isStorageForbidden) throw new Error('SecurityError')
  }
  replace(t, Date, 'now', () => world.now)
  replace(t, globalThis, 'sessionStorage', {
    getItem: (place: string) => (allowed(), kept.get(place) ?? null),
    setItem: (place: string, text: string) => (allowed(), kept.set(place, text)),
    removeItem: (place: string) => (allowed(), kept.delete(place)),
  })
  const core = {
    ApiError,
    server: {
      session: () => {
        world.now += world.answerMs
        return Promise.resolve(world.session)
      },
    },
    useKey: (key: string) => world.log.push(['use', key]),
    ask: (...args: unknown[]) => {
      world.log.push(['ask', ...args])
      return world.ask()
    },
    store: { confirm: () => world.log.push('confirm') },
  } as unknown as Core
  return {
    world,
    core,
    kept,
    /** What is kept where {@link CALL} is. */
    keptOrder: (): unknown => JSON.parse(kept.get(PLACE) ?? 'null'),
    /** Another call of `once`, as after a reload. */
    order: () => {
      const remembered = new RememberedKey('order')
      const choose = (fresh: string, call = CALL): Promise<string> => remembered.choose(core, call, fresh)
      return { remembered, choose }
    },
  }
}
