import type { FleetPlan } from './plan.ts'
import type { AuditLine } from './states.ts'

/** The start of the observer's clock by the clock of an instance, which may be ahead (ms since 1970). */
export function startBy({ clocks }: FleetPlan, instance: number, startedAt: number): number {
  const ahead = clocks?.[instance]
  return typeof ahead === 'number' ? startedAt + ahead * 1000 : startedAt
}

/** The audit lines of a log, as far as promises are about them. @param startedAt see {@link startBy} */
export function auditsIn(log: string, startedAt: number): AuditLine[] {
  return log.split('\n').flatMap((text): AuditLine[] => {
    if (!text.includes('"audit":"')) return []
    try {
      const { audit, time, session, reqId: requestId, reason, control } = JSON.parse(text) as Record<string, string>
      return [{ at: Date.parse(time ?? '') - startedAt, audit: audit ?? '', session, requestId, reason, control }]
    } catch {
      // Half of a line: its process was killed.
      return []
    }
  })
}
