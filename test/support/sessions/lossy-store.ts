import type { Store } from '../../../src/store/store.ts'
import { Unsent } from '../../../src/store/links/unsent.ts'
import { StoreUnavailable } from '../../../src/store/store.ts'

/** What becomes of one call: `unheard`: it is made, and its reply is lost; `unsent`: it is not even made. */
type Loss = 'unheard' | 'unsent'

/** One instance's way to a store that others share. */
export interface LossyStore {
  readonly store: Store
  /** Of the next call of a method, or of all until it is `undefined`. */
  lose(method: keyof Store, loss: Loss, times?: number): void
  /** The next call of a method waits for this once it has been made. */
  hold(method: keyof Store, gate: Promise<void>): void
  /** While this is true, the store is away for this instance. */
  isAway: boolean
  /** For how long the store has been available. */
  availableForMs: number
}

/** Makes one. */
export function lossyStore(shared: Store): LossyStore {
  const losses = new Map<string, { loss: Loss; left: number }>()
  const gates = new Map<string, Promise<void>>()
  const call = async (method: string, made: () => Promise<unknown>): Promise<unknown> => {
    const planted = losses.get(method)
    if (planted !== undefined && --planted.left === 0) losses.delete(method)
    if (lossy.isAway || planted?.loss === 'unsent') throw new StoreUnavailable(new Unsent(new Error('away')))
    const reply = await made()
    const gate = gates.get(method)
    gates.delete(method)
    await gate
    if (planted !== undefined) throw new StoreUnavailable(new Error('the reply is lost'))
    return reply
  }
  const asynchronous = new Set(['create', 'lock', 'read', 'readUntracked', 'readMany', 'replace', 'extend', 'remove'])
  for (const method of ['removeIf', 'bury', 'count']) asynchronous.add(method)
  const lossy: LossyStore = {
    isAway: false,
    availableForMs: Infinity,
    lose: (method, loss, times = 1) => void losses.set(method, { loss, left: times }),
    hold: (method, gate) => void gates.set(method, gate),
    store: new Proxy(shared, {
      get(target, name) {
        if (name === 'unavailableSince') return () => (lossy.isAway ? 1 : undefined)
        if (name === 'availableForMs') return () => lossy.availableForMs
        const member: unknown = Reflect.get(target, name, target)
        if (typeof member !== 'function') return member
        const bound = member.bind(target) as (...args: unknown[]) => Promise<unknown>
        return asynchronous.has(String(name)) ? (...args: unknown[]) => call(String(name), () => bound(...args)) : bound
      },
    }),
  }
  return lossy
}
