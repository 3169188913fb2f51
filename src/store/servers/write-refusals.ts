import { ADVICE } from './causes.ts'
import { WRITE_REFUSALS, type WriteRefusal } from '../../telemetry/store-observer.ts'

/** How often at most refusals are logged. */
const LOG_MS = 60_000

const REASONS: ReadonlySet<string> = new Set(WRITE_REFUSALS)

/** The reason for which a server refused a write. Undefined when the code of its error means something else. */
export function writeRefusalOf(code: string | undefined): WriteRefusal | undefined {
  const reason = code?.toLowerCase()
  return reason !== undefined && REASONS.has(reason) ? (reason as WriteRefusal) : undefined
}

interface Log {
  warn(details: object, message: string): void
}

/** Logs refusals of writes, one at most once a minute. */
export class WriteRefusals {
  readonly #log: Log
  #loggedAt = -Infinity

  constructor(log: Log) {
    this.#log = log
  }

  /** Notes the code of an error that a server replied with. Returns the reason if the server refused a write. */
  noteRefusal(code: string): WriteRefusal | undefined {
    const reason = writeRefusalOf(code)
    if (reason === undefined) return undefined
    const now = performance.now()
    if (now - this.#loggedAt > LOG_MS) {
      this.#loggedAt = now
      this.#log.warn({ reason: code, advice: ADVICE[code] }, 'the session store refuses writes')
    }
    return reason
  }
}
