import { constants, setPriority } from 'node:os'
import { spread } from '../rounds.ts'
import { clock } from './waiting.ts'

/**
 * A process that measures how fast the machine itself is, by a computation that is always the same. The processors of a
 * virtual machine may be slow for a while, and neither its steal time nor its run queues show it. The process takes an
 * eighth of a processor. It replies to every message with the {@link Spell}s since the last one.
 */

/** From when to when the machine was slow, in ms of {@link clock}. */
export type Spell = readonly [from: number, to: number]

/** CPU time of one measurement, how long it may take at most, and the pause after it. */
const WINDOW_CPU_MS = 1
const WINDOW_MS = 8
const PAUSE_MS = 6
const STEPS = 2000
/** Below this share of the usual speed, the machine counts as slow. */
const SLOW = 0.75
/** Slow measurements less far apart than this are one spell; a shorter spell is an error of measurement. */
const APART_MS = 25
const SHORTEST_MS = 1

let windows: { readonly from: number; readonly to: number; readonly speed: number }[] = []
let usual = 0

process.on('message', () => process.send?.(spells()))
setPriority(constants.priority.PRIORITY_LOW)
measure()

function measure(): void {
  const from = clock()
  const before = threadMs()
  let steps = 0
  let value = 1
  do {
    for (let step = 0; step < STEPS; step++) value = (Math.imul(value, 1_664_525) + 1_013_904_223) | 0
    steps++
  } while (threadMs() - before < WINDOW_CPU_MS && clock() - from < WINDOW_MS)
  // The value is used, so that V8 does not leave out its computation.
  windows.push({ from, to: clock(), speed: value === 0 ? 0 : steps / (threadMs() - before) })
  setTimeout(measure, PAUSE_MS)
}

function spells(): Spell[] {
  usual = Math.max(usual, spread(windows.map(({ speed }) => speed)).median)
  const found: [number, number][] = []
  for (const { from, to, speed } of windows) {
    if (speed >= SLOW * usual) continue
    const last = found.at(-1)
    if (last !== undefined && from - last[1] < APART_MS) last[1] = to
    else found.push([from, to])
  }
  windows = []
  return found.filter(([from, to]) => to - from >= SHORTEST_MS)
}

/** CPU time of this thread in ms. */
function threadMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}
