import { slackMs, type Call, type FaultPeriod, type History, type Touch } from './history.ts'

/** What a page did, as far as a fault may explain it. */
export type Concerned = Pick<Call, 'user' | 'instance' | 'kind' | 'at' | 'until' | 'result'>

/** The faults that were on, or had only just ended, during a time. */
export function faultsDuring(history: History, from: number, to: number): FaultPeriod[] {
  return history.faults.filter((fault) => isFelt(history, fault, fault.settleMs, [from, to]))
}

/** Whether a fault explains what a page was told. */
export function isExplained(history: History, call: Concerned): boolean {
  const { at, until = Infinity } = call
  return history.faults.some((fault) =>
    fault.touches.some(
      (touch) => isTouched(touch, call) && isFelt(history, fault, touch.settleMs ?? fault.settleMs, [at, until]),
    ),
  )
}

function isFelt(
  history: History,
  fault: FaultPeriod,
  settleMs: number,
  [from, to]: readonly [number, number],
): boolean {
  const lasts = (fault.to ?? Infinity) + settleMs
  return fault.from <= to && lasts + slackMs(history, fault.to ?? from, from) >= from
}

function isTouched({ instances, users, kinds, results }: Touch, { instance, user, kind, result }: Concerned): boolean {
  // A navigation passes a balancer, so it may have been on any instance.
  if (instances !== undefined && instance !== undefined && !instances.includes(instance)) return false
  if (users !== undefined && !users.includes(user)) return false
  if (kinds !== undefined && !kinds.includes(kind)) return false
  return results === undefined || results.includes(result)
}
