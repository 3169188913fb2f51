import { setImmediate as turn } from 'node:timers/promises'

/**
 * Parts that a test plays: each notes its call, and does what `world` says.
 * @returns `now` for a part that answers at once, and `part` for one that takes a turn of the loop first
 */
export function played(world: Readonly<Record<string, (...args: unknown[]) => unknown>>) {
  const calls: unknown[][] = []
  const now =
    (what: string) =>
    (...args: unknown[]) => (calls.push([what, ...args]), world[what]?.(...args))
  const part =
    (what: string) =>
    async (...args: unknown[]) => (await turn(), now(what)(...args))
  return { calls, now, part }
}
