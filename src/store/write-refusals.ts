import { WRITE_REFUSALS, type WriteRefusal } from '../telemetry/store-observer.ts'

/** How long a refusal counts, where not even a trial (write-trial.ts) shows that there is room again. */
const REFUSAL_MS = 60_000

const REASONS: ReadonlySet<string> = new Set(WRITE_REFUSALS)

/** The remedy for each refusal, for an operator. Contains no secret. */
export const REFUSAL_ADVICE: Readonly<Record<WriteRefusal, string>> = {
  oom: 'Redis is full, so nobody can log in; those logged in go on. Raise maxmemory (REDIS_MAXMEMORY with compose), or find what fills it.',
  misconf: 'Redis cannot write to its disk. Make room there, or put the disk right.',
  noreplicas: 'Too few replicas of Redis are connected (min-replicas-to-write). Put the replicas right.',
  readonly: 'This Redis is a replica. Name the master, or let Sentinels name it.',
}

/** The reason for which a server refused a write. Undefined when the code of its error means something else. */
export function writeRefusalOf(code: string | undefined): WriteRefusal | undefined {
  const reason = code?.toLowerCase()
  return reason !== undefined && REASONS.has(reason) ? (reason as WriteRefusal) : undefined
}

interface Log {
  warn(details: object, message: string): void
}

/** Remembers recent refusals of writes, and logs one at most once a minute. */
export class WriteRefusals {
  readonly #log: Log
  #reason: WriteRefusal | undefined
  #refusedAt = 0
  #loggedAt = -Infinity

  constructor(log: Log) {
    this.#log = log
  }

  /** A warning for an operator. Undefined unless a write was refused recently. */
  get warning(): string | undefined {
    const reason = this.#reason
    if (reason === undefined || performance.now() - this.#refusedAt > REFUSAL_MS) return undefined
    return `the session store refuses writes (${reason.toUpperCase()}): ${REFUSAL_ADVICE[reason]}`
  }

  /** Notes the code of an error that a server replied with. Returns the reason if the server refused a write. */
  noteRefusal(code: string): WriteRefusal | undefined {
    const reason = writeRefusalOf(code)
    if (reason === undefined) return undefined
    const now = performance.now()
    this.#reason = reason
    this.#refusedAt = now
    if (now - this.#loggedAt > REFUSAL_MS) {
      this.#loggedAt = now
      this.#log.warn({ reason: code, advice: REFUSAL_ADVICE[reason] }, 'the session store refuses writes')
    }
    return reason
  }

  /** Notes that a server has accepted a write that needs memory. */
  noteWrite(): void {
    this.#reason = undefined
  }
}
