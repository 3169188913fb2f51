import type { AuditLine } from './states.ts'

/** The audit lines of a log, as far as promises are about them. @param startedAt the start of the observer's clock, as a time of day */
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
