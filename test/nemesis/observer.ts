import { readFile } from 'node:fs/promises'
import type { Test } from 'tap'
import type { ProviderWatch, SandboxProvider } from '../../sandbox/provider.ts'
import type { UpstreamWatch } from '../../sandbox/upstream/watch.ts'
import { attributionOf } from './attribution.ts'
import { emptyHistory, type History } from './history.ts'

const BEAT_MS = 50
/** How often the provider is asked for tokens of sessions that have ended, and instances whether they are ready. */
const ASKED_MS = 500
/** What a timer of an idle machine is late by. */
const USUAL_MS = 10
/** What the observer has to know of an instance. */
export interface Observed {
  readonly name: string
  /** The processes that serve. */
  readonly pids: () => readonly number[]
  /** When what came from this port had left the server; undefined if it came another way. */
  readonly sentAt: (port: number) => number | undefined
  /** Where it says whether it is ready. */
  readonly readyUrl: () => string
}

/** Writes down what happens, on one clock: what upstream and the provider do, and when processes could not run. */
export class Observer {
  readonly history: History = emptyHistory()
  /** The time of day at the start of the clock, for logs (ms since 1970). */
  readonly startedAt = Date.now()
  readonly #start = performance.now()
  readonly #sessionsOfSockets = new Map<string, string | undefined>()
  readonly #waited = new Map<number, number>()
  readonly #total = new Map<string, number>()
  /** The instances that have yet to say whether they are ready. */
  readonly #asked = new Set<number>()
  #provider: Pick<SandboxProvider, 'grantOf'> | undefined
  #instances: readonly Observed[] = []

  /** The time since the observer began (ms). Closures use it, so it is bound. */
  readonly now = (): number => performance.now() - this.#start

  /** Listens to the trading service. */
  readonly upstream: UpstreamWatch = {
    call: ({ method, path, headers, body: request }, { status, body, port }) => {
      const session = this.#sessionOf(String(headers['authorization'] ?? ''))
      const { at, sentAt, instance } = this.#way(port)
      const key = headers['idempotency-key']?.toString()
      this.history.executed.push({ at, sentAt, instance, session, method, path, key, status, request, response: body })
      const otp = /\?otp=([\w-]+)/.exec(body)?.[1]
      if (otp !== undefined) this.#sessionsOfSockets.set(otp, session)
    },
    message: (text, { otp, port }) => {
      const session = otp === undefined ? undefined : this.#sessionsOfSockets.get(otp)
      this.history.delivered.push({ ...this.#way(port), session, text })
    },
    bought: ({ passthrough }, contractId) => {
      const { purchase } = { ...(passthrough as { purchase?: string } | undefined) }
      if (purchase !== undefined) this.history.bought.push({ at: this.now(), purchase, contractId })
    },
    tick: (tick) => this.history.ticks.push({ at: this.now(), ...tick }),
  }

  /** Listens to the provider. */
  readonly atProvider: ProviderWatch = {
    authorization: (params) => {
      const { at, state } = { at: this.now(), state: params['state'] ?? '' }
      this.history.authorizations.push({ at, state, attribution: attributionOf(params) })
    },
    token: (params, isGranted) => {
      const session = this.#provider?.grantOf(params['code'] ?? params['refresh_token'] ?? '')
      this.history.tokenCalls.push({ at: this.now(), session, isGranted })
    },
    loggedOut: (grant) => {
      const ending = this.history.endings.findLast((each) => each.by === 'provider' && each.session === grant)
      if (ending !== undefined) ending.confirmedAt = this.now()
    },
  }

  /** From now on it knows whose tokens are, and measures the instances. It ends with the test. */
  watch(t: Test, provider: Pick<SandboxProvider, 'grantOf' | 'usableTokens'>, instances: readonly Observed[]): void {
    this.#provider = provider
    this.#instances = instances
    let dueAt = this.now() + BEAT_MS
    const beat = setInterval(() => {
      this.#note('harness', this.now() - dueAt)
      dueAt = this.now() + BEAT_MS
      for (const instance of instances) void this.#measure(instance)
    }, BEAT_MS)
    const asking = setInterval(() => {
      this.#noteRevoked(provider)
      for (const [at, instance] of instances.entries()) void this.#noteReady(at, instance)
    }, ASKED_MS)
    t.teardown(() => [beat, asking].forEach((timer) => clearInterval(timer)))
  }

  #noteRevoked({ usableTokens }: Pick<SandboxProvider, 'usableTokens'>): void {
    for (const ending of this.history.endings) {
      if (ending.confirmedAt !== undefined && ending.revokedAt === undefined && usableTokens(ending.session) === 0)
        ending.revokedAt = this.now()
    }
  }

  /** The instances, as far as it has to know them. */
  get instances(): readonly Observed[] {
    return this.#instances
  }

  async #noteReady(instance: number, { readyUrl }: Observed): Promise<void> {
    // While an instance stands still, each question would take one more of its descriptors.
    if (this.#asked.has(instance)) return
    this.#asked.add(instance)
    const response = await fetch(readyUrl()).catch(() => undefined)
    await response?.text().catch(() => undefined)
    this.#asked.delete(instance)
    if (response !== undefined) this.history.readiness.push({ at: this.now(), instance, isReady: response.ok })
  }

  /** The share of the run in which each waited for a processor. */
  get waits(): ReadonlyMap<string, number> {
    return new Map([...this.#total].map(([of, ms]) => [of, ms / this.now()]))
  }

  /** Linux counts how long the main thread of a process was ready to run, and did not. */
  async #measure({ name, pids }: Observed): Promise<void> {
    for (const pid of pids()) {
      const text = await readFile(`/proc/${pid}/schedstat`, 'utf8').catch(() => undefined)
      if (text === undefined) continue
      const waitedMs = Number(text.split(' ')[1]) / 1e6
      this.#note(name, waitedMs - (this.#waited.get(pid) ?? waitedMs))
      this.#waited.set(pid, waitedMs)
    }
  }

  #note(of: string, ms: number): void {
    this.#total.set(of, (this.#total.get(of) ?? 0) + Math.max(0, ms))
    if (ms > USUAL_MS) this.history.delays.push({ of, at: this.now(), ms })
  }

  #way(port: number): { at: number; sentAt: number; instance: number | undefined } {
    const at = this.now()
    const ways = this.#instances.flatMap(({ sentAt }, instance) => {
      const sent = sentAt(port)
      return sent === undefined ? [] : [{ at, sentAt: sent, instance }]
    })
    // A port that a connection has left may be that of another instance by now.
    const [newest] = ways.toSorted((one, other) => other.sentAt - one.sentAt)
    if (newest !== undefined) return newest
    return { at, sentAt: at, instance: undefined }
  }

  #sessionOf(authorization: string): string | undefined {
    return this.#provider?.grantOf(authorization.replace('Bearer ', ''))
  }
}
