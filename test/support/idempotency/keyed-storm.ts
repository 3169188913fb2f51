import { sendTo, type Answer, TRANSFER } from '../user.ts'
import { BEHAVIOURS, type OrderUpstream } from './order-upstream.ts'
import { untilSlow } from '../time/until.ts'

/** Where a storm goes. */
export interface StormOptions {
  readonly upstream: OrderUpstream
  /** The ports of the instances. */
  readonly ports: readonly number[]
  /** The Cookie headers of the sessions. */
  readonly cookies: readonly string[]
  readonly keys: number
  /** The time over which the first requests of all keys are spread. */
  readonly spreadMs: number
  /** How long after its first request a key is sent again at the latest. */
  readonly repeatWithinMs?: number
  readonly random: () => number
}

/** One request and what came of it. Times are ms since the start of this process. */
interface Sent {
  readonly startedAt: number
  readonly endedAt: number
  /** Undefined without a response. */
  readonly answer: Answer | undefined
}

/** A period in which a master may have lost what came of calls: their records are confirmed by replicas, their ends are not. */
export interface Loss {
  readonly from: number
  readonly to: number
}

const MAX_REPEATS = 8
/** Longer than a store is frozen, so that a key comes before, during and after that. */
const REPEAT_WITHIN_MS = 2500
/** Requests that settle keys at the same time. */
const MAX_CONCURRENT = 16
const CODES: ReadonlySet<unknown> = new Set(['idempotency_in_progress', 'outcome_unknown'])
/** What a first call may get, besides a response. */
const FAILURES: ReadonlySet<unknown> = new Set([
  'upstream_lost',
  'upstream_error',
  'upstream_unreachable',
  // A 429 of upstream to another call holds this one back for too long.
  'rate_limited',
  'session_store_unavailable',
  'shutting_down',
])

/** Many keys, each sent several times at random moments to random instances. */
export class KeyedStorm {
  readonly #options: StormOptions
  readonly #sent = new Map<string, Sent[]>()

  constructor(options: StormOptions) {
    this.#options = options
  }

  /** How many responses there were of each kind, for the log. */
  get counts(): Record<string, number> {
    const counts: Record<string, number> = {}
    for (const { answer } of [...this.#sent.values()].flat()) {
      const name = nameOf(answer)
      counts[name] = (counts[name] ?? 0) + 1
    }
    return counts
  }

  async run(): Promise<void> {
    const { keys, spreadMs, random, repeatWithinMs = REPEAT_WITHIN_MS } = this.#options
    const sendings: Promise<void>[] = []
    for (let index = 0; index < keys; index++) {
      const key = `${BEHAVIOURS[Math.floor(random() * BEHAVIOURS.length)]} ${index}`
      this.#sent.set(key, [])
      const firstAt = random() * spreadMs
      const repeats = 1 + Math.floor(random() * MAX_REPEATS)
      for (let count = 0; count < repeats; count++) {
        // Half of them come at the same moment.
        const atMs = firstAt + (random() < 0.5 ? 0 : random() * repeatWithinMs)
        const port = this.#port()
        sendings.push(after(atMs, () => this.#send(key, port)))
      }
    }
    await Promise.all(sendings)
  }

  /** Asks every instance for every key until nothing is in progress. */
  async settle(): Promise<void> {
    for (const port of this.#options.ports) {
      await this.#each(async (key) => {
        await untilSlow(async () => {
          const { answer } = await this.#send(key, port)
          return answer !== undefined && ![503, 429].includes(answer.status) && !/in_progress/.test(nameOf(answer))
        }, `${key} is settled`)
      })
    }
  }

  /** What is wrong with another call under each key: it must be refused, whatever became of the first. */
  async faultsOfOtherCalls(): Promise<string[]> {
    const faults: string[] = []
    await this.#each(async (key) => {
      const answer = await this.#request(key, this.#port(), 'another body')
      if (answer?.status !== 422) faults.push(`${key}: another body got ${nameOf(answer)}`)
    })
    return faults
  }

  /** The keys that upstream saw more than once. */
  get sentTwice(): string[] {
    const { seen } = this.#options.upstream
    return [...this.#sent.keys()].filter((key) => (seen.get(key)?.length ?? 0) > 1)
  }

  /** Everything that breaks the promise. @param losses periods for which nothing is said about the ends of calls */
  faults(losses: readonly Loss[]): string[] {
    const faults = this.sentTwice.map((key) => `${key}: upstream saw it more than once`)
    for (const [key, sent] of this.#sent) {
      const seen = this.#options.upstream.seen.get(key) ?? []
      const mayBeLost = losses.some(({ from, to }) =>
        sent.some(({ startedAt, endedAt }) => startedAt < to && endedAt > from),
      )
      if (!mayBeLost) faults.push(...contradictions(key, sent, seen))
      faults.push(...sent.filter(({ answer }) => !isAllowed(answer)).map(({ answer }) => `${key}: ${nameOf(answer)}`))
    }
    return faults
  }

  /** Runs a task for each key, a number of them at once. */
  async #each(task: (key: string) => Promise<void>): Promise<void> {
    const left = this.#sent.keys()
    const work = async (): Promise<void> => {
      for (const key of left) await task(key)
    }
    await Promise.all(Array.from({ length: MAX_CONCURRENT }, work))
  }

  #port(): number {
    const { ports, random } = this.#options
    return ports[Math.floor(random() * ports.length)] ?? 0
  }

  async #send(key: string, port: number): Promise<Sent> {
    const startedAt = performance.now()
    const answer = await this.#request(key, port, `body of ${key}`)
    const sent = { startedAt, endedAt: performance.now(), answer }
    this.#sent.get(key)?.push(sent)
    return sent
  }

  async #request(key: string, port: number, body: string): Promise<Answer | undefined> {
    const { cookies } = this.#options
    const index = Number(key.split(' ')[1])
    const headers = { cookie: cookies[index % cookies.length] ?? '', 'x-csrf': '1', 'idempotency-key': key }
    try {
      return await sendTo(port, 'POST', TRANSFER, { headers, body })
    } catch {
      return undefined
    }
  }
}

/** What one key's responses must not say together. */
function contradictions(key: string, sent: readonly Sent[], seen: readonly number[]): string[] {
  const faults: string[] = []
  const responses = new Set(sent.flatMap(({ answer }) => (answer?.status === 201 ? [answer.text] : [])))
  if (responses.size > 1) faults.push(`${key}: ${responses.size} different responses`)
  for (const { endedAt, answer } of sent) {
    const name = nameOf(answer)
    const later = sent.filter(({ startedAt }) => startedAt > endedAt).map((each) => nameOf(each.answer))
    const isFinal = name === '201' || name === 'outcome_unknown'
    const other = isFinal && later.find((each) => ![name, 'none', 'session_store_unavailable'].includes(each))
    if (other) faults.push(`${key}: ${name}, then ${other}`)
    if (name === 'outcome_unknown' && seen.some((at) => at > endedAt)) faults.push(`${key}: sent after it was unknown`)
  }
  return faults
}

function isAllowed(answer: Answer | undefined): boolean {
  if (answer === undefined || answer.status === 201) return true
  const name = nameOf(answer)
  return CODES.has(name) || FAILURES.has(name) || name === '429'
}

/** The code of a problem, the status of any other response, or `none`. */
function nameOf(answer: Answer | undefined): string {
  if (answer === undefined) return 'none'
  const isProblem = answer.headers['content-type']?.startsWith('application/problem') === true
  return isProblem ? String(answer.json['code']) : String(answer.status)
}

function after(ms: number, act: () => Promise<unknown>): Promise<void> {
  return new Promise((resolve) => void setTimeout(() => void act().then(() => resolve()), ms))
}
