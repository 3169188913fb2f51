import { WRITE_REFUSALS, type WriteRefusal } from '../telemetry/store-observer.ts'

/** Where nothing is written any more, nobody learns that there is room again: so long a refusal counts. */
const REFUSAL_MS = 60_000

const REASONS: ReadonlySet<string> = new Set(WRITE_REFUSALS)
/** How Redis names the reason of a refusal: the first word of its answer. */
const CODE = /^[A-Z]+(?= |$)/

/** What helps against each, for an operator. Holds no secret. */
export const REFUSAL_ADVICE: Readonly<Record<WriteRefusal, string>> = {
  oom: 'Redis is full, so nobody can log in; those logged in go on. Raise maxmemory (REDIS_MAXMEMORY with compose), or find what fills it.',
  misconf: 'Redis cannot write to its disk. Make room there, or put the disk right.',
  noreplicas: 'Too few replicas of Redis are connected (min-replicas-to-write). Put the replicas right.',
  readonly: 'This Redis is a replica. Name the master, or let Sentinels name it.',
}

/** Why a server refuses writes, where the first word of its answer says so. */
export function writeRefusalOf(answer: string): WriteRefusal | undefined {
  const reason = CODE.exec(answer)?.[0].toLowerCase()
  return reason !== undefined && REASONS.has(reason) ? (reason as WriteRefusal) : undefined
}

/** Remembers that writes were refused lately. A line of the log says so, once a minute at most. */
export class WriteRefusals {
  readonly #log: { warn(details: object, message: string): void }
  #reason: WriteRefusal | undefined
  #refusedAt = 0
  #loggedAt = -Infinity

  constructor(log: { warn(details: object, message: string): void }) {
    this.#log = log
  }

  /** Undefined while writes are taken, as far as is known. */
  get warning(): string | undefined {
    const reason = this.#reason
    if (reason === undefined || performance.now() - this.#refusedAt > REFUSAL_MS) return undefined
    return `the session store refuses writes (${reason.toUpperCase()}): ${REFUSAL_ADVICE[reason]}`
  }

  /** A server has refused something. Returns why, where it was a write that it will not take at the moment. */
  noteRefusal(answer: string): WriteRefusal | undefined {
    const reason = writeRefusalOf(answer)
    if (reason === undefined) return undefined
    const now = performance.now()
    this.#reason = reason
    this.#refusedAt = now
    if (now - this.#loggedAt > REFUSAL_MS) {
      this.#loggedAt = now
      this.#log.warn(
        { reason: reason.toUpperCase(), advice: REFUSAL_ADVICE[reason] },
        'the session store refuses writes',
      )
    }
    return reason
  }

  /** A server has taken a write that needs room. */
  tookWrite(): void {
    this.#reason = undefined
  }
}
