import type { Test } from 'tap'
import { replace } from '../time/replace.ts'
import { TabStorage } from './ordering-browser.ts'
import { PROBLEM, problemBody } from './own-problem.ts'

/** What may happen to a call and its response. */
type MessageFault =
  | 'is refused'
  | 'gets no response'
  | 'is lost silently'
  | 'gets a silent response'
  | 'gets a late response'
  | 'gets half a response'
  | 'gets half a response and no more'
/** What may happen to the page when a message leaves or arrives, or the storage is used. */
type PageFault =
  | 'is reloaded'
  | 'sleeps'
  | 'sleeps and loses its connections'
  | 'is clicked again'
  | 'may store nothing'
export type Fault = MessageFault | PageFault

interface Timer {
  at: number
  readonly call: () => void
}

const HOUR_MS = 3_600_000

/**
 * A page, the network and a server that sends each key once, in a time of its own. At one of the moments when a message leaves or
 * arrives, or the storage is used, something happens.
 */
export class OrderNetwork {
  /** Called when the page is reloaded, or its user clicks. */
  onPage: (does: 'load' | 'click') => void = () => undefined
  /** How many moments there have been. */
  moments = 0
  /** The keys of the orders that the server has made, and when each call with a key left the page. */
  readonly made: string[] = []
  readonly left: number[] = []
  readonly tab = new TabStorage()
  #now = 1_700_000_000_000
  #until = 0
  #pages = 0
  readonly #timers = new Set<Timer>()
  readonly #at: number
  readonly #fault: Fault
  /** Loses the response to each call that waits for one. */
  readonly #waiting = new Set<() => void>()
  readonly #keys = new Map<string, 'running' | 'made'>()

  /** @param at the moment of the fault */
  constructor(at: number, fault: Fault) {
    this.#at = at
    this.#fault = fault
  }

  /** Makes its time and its storage those of this process, until the test ends or another one does. */
  begin(t: Test): void {
    replace(t, Date, 'now', () => this.#now)
    replace(t, globalThis, 'setTimeout', (call: () => void, ms = 0) => this.#later(ms, call))
    replace(t, globalThis, 'clearTimeout', (timer: Timer) => this.#timers.delete(timer))
    replace(t, Math, 'random', () => 0.5)
    replace(t, AbortSignal, 'timeout', (ms: number) => {
      const late = new AbortController()
      this.#later(ms, () => late.abort())
      return late.signal
    })
    const used = (): void => {
      if (this.#strikes() === 'may store nothing') throw new DOMException('full', 'QuotaExceededError')
    }
    replace(t, globalThis, 'sessionStorage', {
      getItem: (name: string) => (used(), this.tab.getItem(name)),
      setItem: (name: string, text: string) => (used(), this.tab.setItem(name, text)),
      removeItem: (name: string) => (used(), this.tab.removeItem(name)),
    })
    // A page without locks, which has to do without.
    replace(t, globalThis, 'navigator', { onLine: true })
  }

  get now(): number {
    return this.#now
  }

  /** Lets so much time pass. */
  async pass(ms: number): Promise<void> {
    this.#until = this.#now + ms
    for (;;) {
      for (let turns = 0; turns < 3; turns++) await new Promise((resolve) => void setImmediate(resolve))
      const [next] = [...this.#timers].sort((one, other) => one.at - other.at)
      if (!next || next.at > this.#until) break
      this.#now = Math.max(this.#now, next.at)
      this.#timers.delete(next)
      next.call()
    }
    this.#now = this.#until
  }

  /** The `fetch` of a page that was just loaded. It is none any more once the next page is loaded. */
  page(): (url: string, init: RequestInit) => Promise<Response> {
    const page = ++this.#pages
    return (_url, init) => this.#fetch(page, init)
  }

  #fetch(page: number, { headers, signal }: RequestInit): Promise<Response> {
    return new Promise((resolve, reject) => {
      if (page !== this.#pages) return
      signal?.addEventListener('abort', () => reject(signal.reason as Error))
      const lost = (): void => reject(new TypeError('Failed to fetch'))
      const key = new Headers(headers).get('idempotency-key')
      if (key !== null) this.left.push(this.#now)
      this.#waiting.add(lost)
      const fault = this.#strikes()
      if (fault === 'is refused') return void this.#later(5, lost)
      if (fault === 'is lost silently') return
      this.#later(10, () =>
        this.#serve(key, (response) => {
          this.#strikes()
          if (fault === 'gets a silent response') return
          if (fault === 'gets no response') return lost()
          this.#later(fault === 'gets a late response' ? 70_000 : 10, () => {
            if (page !== this.#pages) return
            this.#waiting.delete(lost)
            this.#strikes(true)
            resolve(
              fault?.startsWith('gets half')
                ? half(response, fault === 'gets half a response' ? undefined : signal)
                : response,
            )
          })
        }),
      )
    })
  }

  #serve(key: string | null, respond: (response: Response) => void): void {
    if (key === null) return respond(Response.json(session(this.#now)))
    const state = this.#keys.get(key)
    if (state === 'made') return respond(Response.json({}))
    if (state === 'running') return respond(problem(409, 'idempotency_in_progress'))
    this.#keys.set(key, 'running')
    this.#later(300, () => {
      this.#keys.set(key, 'made')
      this.made.push(key)
      respond(Response.json({}))
    })
  }

  /**
   * @param isArrival whether the page has not heard of it yet; after any other moment it goes on before something else happens
   * @returns the fault, if this is its moment
   */
  #strikes(isArrival = false): Fault | undefined {
    if (this.moments++ !== this.#at) return undefined
    if (this.#fault === 'is clicked again') this.#later(0, () => this.onPage('click'))
    if (this.#fault === 'is reloaded') this.#later(0, () => this.onPage('load'))
    if (this.#fault.startsWith('sleeps')) {
      if (isArrival) this.#sleep()
      else this.#later(0, () => this.#sleep())
    }
    return this.#fault
  }

  /** No timer runs meanwhile, so that each is late afterwards. */
  #sleep(): void {
    this.#now += HOUR_MS
    this.#until += HOUR_MS
    for (const timer of this.#timers) timer.at += HOUR_MS
    if (this.#fault !== 'sleeps') for (const lost of this.#waiting) lost()
  }

  #later(ms: number, call: () => void): Timer {
    const timer = { at: this.#now + ms, call }
    this.#timers.add(timer)
    return timer
  }
}

function session(now: number): object {
  const seconds = Math.floor(now / 1000)
  const limits = { now: seconds, expires_at: seconds + 36_000, idle_expires_at: seconds + 36_000 }
  return { authenticated: true, ...limits, scope: 'trade', session: 'A', subject: 'user' }
}

function problem(status: number, code: string): Response {
  return new Response(problemBody(code, { status }), { status, headers: { ...PROBLEM, 'retry-after': '1' } })
}

/** A response whose body breaks off at once, or stalls until its call is aborted. */
function half({ status, headers }: Response, stalls: AbortSignal | null | undefined): Response {
  const start = (controller: ReadableStreamDefaultController): void => {
    if (stalls) stalls.addEventListener('abort', () => controller.error(stalls.reason))
    else controller.error(new TypeError('network error'))
  }
  return new Response(new ReadableStream({ start }), { status, headers })
}
