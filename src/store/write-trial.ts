import { runScript } from './script.ts'
import { delay, replyCode, replyWithin, type MasterCommands, type RedisLink } from './redis-link.ts'

/** How often each process asks. */
const INTERVAL_MS = 5000
/** Timeout for the replies of the masters. */
const REPLY_TIMEOUT_MS = 2000

/**
 * A script that may write, but does nothing. A server that refuses writes refuses to run it, with the same error code
 * (redis.io/docs/latest/develop/programmability/eval-intro: script flags). It has no key, so it runs on any node of a Cluster.
 */
const MAY_WRITE = '#!lua\nreturn 0'

/** What became of a trial: the code of the first refusal, or undefined when every master would take a write. */
type Verdict = (code: string | undefined) => void

/**
 * Asks every master at intervals whether it would take a write. So each process learns by itself that Redis is full, and
 * that it has room again, even if nobody logs in on it. Nothing is written.
 */
export class WriteTrial {
  readonly #link: Pick<RedisLink, 'askMasters'>
  readonly #verdict: Verdict
  #isClosed = false

  /** @param verdict called after each trial that every master has replied to */
  constructor(link: Pick<RedisLink, 'askMasters'>, verdict: Verdict) {
    this.#link = link
    this.#verdict = verdict
  }

  /** Asks now and then at intervals, until it is closed. Never rejects. */
  async run(): Promise<void> {
    while (!this.#isClosed) {
      await this.#ask()
      await delay(INTERVAL_MS)
    }
  }

  close(): void {
    this.#isClosed = true
  }

  async #ask(): Promise<void> {
    try {
      const codes = await replyWithin(REPLY_TIMEOUT_MS, this.#link.askMasters(refusalOf))
      if (!this.#isClosed) this.#verdict(codes.find((code) => code !== undefined))
    } catch {
      // A master that does not reply is no refusal: whether the link is healthy is watched elsewhere.
    }
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
