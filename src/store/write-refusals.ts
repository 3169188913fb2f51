import { polls } from '../time/polls.ts'
import { beforeDeadline } from './deadline.ts'
import { replyCode, type MasterCommands, type RedisLink } from './redis-link.ts'
import { runScript } from './scripts.ts'
import { WRITE_REFUSALS, type WriteRefusal } from '../telemetry/store-observer.ts'

/** How long a refusal counts, where not even {@link tryWrites} shows that there is room again. */
const REFUSAL_MS = 60_000

const REASONS: ReadonlySet<string> = new Set(WRITE_REFUSALS)

/** The remedy for each refusal, for an operator. Contains no secret. */
export const REFUSAL_ADVICE: Readonly<Record<WriteRefusal, string>> = {
  oom: 'Redis is full, so nobody can log in, and calls with an Idempotency-Key get 503; everything else goes on. Raise maxmemory (REDIS_MAXMEMORY with compose), or find what fills it.',
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

/** How often each process asks. */
const TRIAL_INTERVAL_MS = 5000
/** Timeout for the replies of the masters. */
const REPLY_TIMEOUT_MS = 2000

/**
 * A script that may write, but does nothing. A server that refuses writes refuses to run it, with the same error code
 * (redis.io/docs/latest/develop/programmability/eval-intro: script flags). It has no key, so it runs on any node of a Cluster.
 */
const MAY_WRITE = '#!lua\nreturn 0'

/**
 * Asks every master at intervals whether it would take a write. So each process learns by itself that Redis is full, and
 * that it has room again, even if no user logs in on this process. Nothing is written.
 * @param verdict is told the code of the first refusal, or undefined, each time that every master has replied
 * @returns ends the trials
 */
export function tryWrites(
  link: Pick<RedisLink, 'askMasters'>,
  verdict: (code: string | undefined) => void,
): () => void {
  let isOver = false
  const ask = async (): Promise<void> => {
    // A master that does not reply is no refusal: whether the link is healthy is watched elsewhere.
    const codes = await beforeDeadline(REPLY_TIMEOUT_MS, link.askMasters(refusalOf)).catch(() => undefined)
    if (codes !== undefined && !isOver) verdict(codes.find((code) => code !== undefined))
  }
  const end = polls(ask, TRIAL_INTERVAL_MS, 0)
  return () => {
    isOver = true
    end()
  }
}

/** The code of the error with which a master refuses. @throws Error when it does not reply */
async function refusalOf(master: MasterCommands): Promise<string | undefined> {
  try {
    await runScript(master, MAY_WRITE, [])
    return undefined
  } catch (error) {
    const code = replyCode(error)
    if (code === undefined) throw error
    return code
  }
}
