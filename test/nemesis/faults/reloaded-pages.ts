import { setTimeout as pause } from 'node:timers/promises'
import type { Fault } from '../fault.ts'
import { oneOf } from '../whom.ts'

const LOOKS_MS = 4
/** The share of looks at an order under way that end with a reload. */
const SHARE = 0.08

/** Users reload pages that make an order. */
export const reloadedPages: Fault = {
  name: 'reloaded-pages',
  sentence:
    'Pages of the browser package are reloaded while an order is under way, at any moment of it: their scripts are gone, and the storage of the tab is kept.',
  lastsMs: { least: 4000, most: 12_000 },
  apply({ tabs }, random) {
    const healing = new AbortController()
    const reloading = async (): Promise<void> => {
      for (; !healing.signal.aborted; await pause(LOOKS_MS)) {
        const busy = [...tabs].filter(({ isBusy }) => isBusy)
        if (busy.length > 0 && random() < SHARE) await oneOf(busy, random).reload()
      }
    }
    const reloaded = reloading()
    return {
      note: 'pages are reloaded while they make orders',
      touches: [],
      settleMs: 0,
      async heal() {
        healing.abort()
        await reloaded
      },
    }
  },
}
