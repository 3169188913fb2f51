import type { Logger } from 'pino'
import { BoundedLines } from './bounded-lines.ts'

const MAX_ID = 200
const lines = new BoundedLines({ atOnce: 1, everyMs: 1000 })
let count = 0

/** How many rejections nobody has handled in this process so far. */
export function unhandledRejections(): number {
  return count
}

/**
 * From now on a rejection that nobody handles is logged and counted, and ends nothing: it is a fault of this server, but one
 * request that can cause it must not end an instance for all users. Each kind is logged once a second at most. Work without which
 * the process would be of no use is `vital` (time/vital.ts).
 */
export function surviveRejections(log: Logger): void {
  process.on('unhandledRejection', (reason) => {
    count++
    const err = reason instanceof Error ? reason : new Error(`a ${typeof reason} was thrown`)
    const id = `${err.name} ${err.message}`.slice(0, MAX_ID)
    lines.add(log, { id, write: (count) => log.error({ err, count }, 'a rejection that nobody handles') })
  })
}
