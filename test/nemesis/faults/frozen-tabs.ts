import { setTimeout as pause } from 'node:timers/promises'
import type { Fault } from '../fault.ts'

/** It is rather frozen while an order is under way, if there is one so soon. */
const WAITS_MS = 1000
const LOOKS_MS = 4

/** Tabs are frozen, as a browser does with those in the background. */
export const frozenTabs: Fault = {
  name: 'frozen-tabs',
  sentence:
    'Scripts, timers and sockets of tabs with the browser package stand still, and go on later with all that has become due and has come meanwhile.',
  lastsMs: { least: 2000, most: 26_000 },
  async apply({ tabs }, random) {
    const all = [...tabs].filter(() => random() < 0.8)
    const ends = await Promise.all(
      all.map(async (tab) => {
        for (let waitedMs = random() * LOOKS_MS; waitedMs < WAITS_MS && !tab.isBusy; waitedMs += LOOKS_MS)
          await pause(LOOKS_MS)
        return tab.freeze()
      }),
    )
    return {
      note: `tabs of ${all.map(({ user }) => user).join(', ')} are frozen`,
      touches: [],
      settleMs: 0,
      heal: () => ends.forEach((end) => end()),
    }
  },
}
