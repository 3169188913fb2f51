import type { LedgerWindow } from '../../store/ledger/ledger.ts'

/**
 * The time (ms) over which this many one-time URLs have to be spread, so that each window has room for them beside the other
 * classes, and at least for a quarter of their ceiling. Within the shortest window they are spread evenly. 0 for one.
 * @param windows shortest first
 * @param others for each window the calls of other classes that count now
 */
export function spreadMs(count: number, windows: readonly LedgerWindow[], others: readonly number[]): number {
  let left = count
  let totalMs = 0
  for (const [at, { ceilings, windowMs }] of [...windows.entries()].toReversed()) {
    if (left <= 1) break
    const room = Math.max(1, Math.floor(Math.max(ceilings.otps - (others[at] ?? 0), ceilings.otps / 4)))
    const full = Math.floor((left - 1) / room)
    totalMs += full * windowMs
    left -= full * room
    if (at === 0) totalMs += ((left - 1) / room) * windowMs
  }
  return totalMs
}
