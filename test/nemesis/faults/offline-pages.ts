import type { Fault } from '../fault.ts'

/** Pages have no network. */
export const offlinePages: Fault = {
  name: 'offline-pages',
  sentence:
    'Nothing passes between pages of the browser package and the servers for a while, whether or not the browser notices, and what was on its way arrives later.',
  lastsMs: { least: 2000, most: 15_000 },
  apply({ tabs }, random) {
    const isNoticed = random() < 0.5
    const ends = [...tabs].map((tab) => tab.disconnect(isNoticed))
    return {
      note: `tabs of ${[...tabs].map(({ user }) => user).join(', ')} are offline, ${isNoticed ? 'as' : 'and not as'} the browser says`,
      touches: [],
      settleMs: 0,
      heal: () => ends.forEach((end) => end()),
    }
  },
}
