import { BUDGET_CLASSES, byClass, type BudgetClass } from '../../config/upstream-budget.ts'
import type { Demand } from './demand.ts'
import type { Wanted } from './leaseholder.ts'
import type { Shares } from './shares.ts'
import type { WaitingLine } from './waiting-line.ts'

/** The calls within equal parts, and the calls beyond them that are allowed. No other call is a reason to ask for tokens. */
export type Demands = Readonly<Record<'equal' | 'more', Demand>>

/**
 * The request of a report to the ledger: tokens for calls that are expected, and for calls that wait, as far as they may have
 * some. So a user with many calls takes no more from other processes than from the others of its own.
 * @param ready how many tokens are always at hand for orders besides, so that they last until the next report
 */
export function wantedTokens(
  lines: Readonly<Record<BudgetClass, WaitingLine>>,
  demands: Demands,
  shares: Shares,
  ready: number,
): Wanted {
  const [equal, more] = [demands.equal.expected(), demands.more.expected()]
  const most = byClass(() => 0)
  const target = byClass(() => 0)
  for (const each of BUDGET_CLASSES) {
    const line = lines[each]
    const waiting = line.count((subject) => shares.equalLeft(each, subject))
    const beyond = line.length - waiting
    const extra = beyond + more[each] === 0 ? 0 : Math.min(beyond + more[each], shares.moreLeft(each))
    const always = equal[each] + (each === 'orders' ? ready : 0)
    most[each] = always + more[each]
    // One at least: a subject may have another call in one window and have no more in the other, and would wait for ever.
    target[each] = waiting + always + Math.max(Math.min(1, beyond), extra)
  }
  return { most, target }
}
