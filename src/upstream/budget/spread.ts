import type { BudgetClass } from '../../config/upstream-budget.ts'
import type { LedgerWindow } from '../../store/ledger/ledger.ts'

/**
 * The time (ms) over which so many calls of a class have to be spread, so that each window has room for them beside what is
 * used now, and at least for a quarter of its ceiling. Within the shortest window they are spread evenly.
 * @param windows shortest first
 * @param used for each window the calls that count now
 */
export function spreadMs(
  count: number,
  budgetClass: BudgetClass,
  windows: readonly LedgerWindow[],
  used: readonly number[],
): number {
  let left = count
  let totalMs = 0
  for (let at = windows.length - 1; at >= 0 && left > 0; at--) {
    const { ceilings, windowMs } = windows[at] ?? { ceilings: { [budgetClass]: 1 }, windowMs: 0 }
    const ceiling = ceilings[budgetClass]
    const room = Math.max(1, Math.floor(Math.max(ceiling - (used[at] ?? 0), ceiling / 4)))
    const full = Math.floor((left - 1) / room)
    totalMs += full * windowMs
    left -= full * room
    if (at === 0) totalMs += ((left - 1) / room) * windowMs
  }
  return totalMs
}
