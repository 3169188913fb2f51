import { readFileSync } from 'node:fs'
import type { ActiveSession, Client, SessionState } from '../../../../client/dist/client.js'
import type { series } from '../../../../client/dist/client/series.js'
import type { Holder, VirtualTime } from './virtual-time.ts'

const GLOBALS = [
  'globalThis',
  'Date',
  'Math',
  'performance',
  'setTimeout',
  'clearTimeout',
  'setInterval',
  'clearInterval',
  'AbortSignal',
  'BroadcastChannel',
  'WebSocket',
  'fetch',
] as const
/** A module of the package as a function of what a browser gives to a page, so that each tab has its own. */
function moduleOf(path: string): (...globals: unknown[]) => unknown {
  const source = readFileSync(new URL(`../../../../client/dist/${path}`, import.meta.url), 'utf8')
  const at = source.lastIndexOf('export{')
  const names = source.slice(at + 7, source.indexOf('}', at)).replaceAll(/([\w$]+) as (\w+)/g, '$2:$1')
  // oxlint-disable-next-line typescript/no-implied-eval -- a module can be loaded once only
  return new Function(...GLOBALS, `${source.slice(0, at)}\nreturn {${names}}`) as (...globals: unknown[]) => unknown
}

const core = moduleOf('client.js') as (...globals: unknown[]) => { createClient(options: object): Client }
const chart = moduleOf('client/series.js') as (...globals: unknown[]) => { series: typeof series }

/** The browser of a tab, and what is behind it. */
export interface TabHost {
  readonly time: VirtualTime
  random(): number
  onError(error: unknown): void
  /** Called when a listener of the session was told something. */
  readonly onTold: (tab: Tab) => void
  navigatorOf(tab: Tab): object
  channelOf(tab: Tab): unknown
  socketOf(tab: Tab): unknown
  fetch(tab: Tab, path: string, init: RequestInit): Promise<Response>
}

/** A BroadcastChannel that is open. */
export interface Channel {
  readonly name: string
  readonly hears: (data: unknown) => void
}

/** What a listener of a page was told. */
interface Told {
  readonly state: SessionState
  readonly isOther: boolean
}

/** A page in a tab of a browser. */
export class Tab implements Holder {
  readonly client: Client
  /** That of `trading-bff-client/series`. */
  readonly series: typeof series
  /** Whether the page is kept for Back, frozen, or gone. */
  is: 'shown' | 'away' | 'frozen' | 'gone' = 'shown'
  readonly channels = new Set<Channel>()
  readonly listeners = new Map<string, Set<(event: object) => void>>()
  /** What its listener was told, in order. */
  readonly told: Told[] = []
  /** What a listener throws; how often one was called that stops itself, and one that was subscribed twice and stopped once. */
  readonly fault = new Error('a listener fails')
  once = 0
  counted = 0
  calls = 0
  readonly #browser: TabHost

  constructor(browser: TabHost) {
    this.#browser = browser
    const globals = this.#globals()
    const given = GLOBALS.map((name) => globals[name])
    this.series = chart(...given).series
    this.client = core(...given).createClient({ baseUrl: 'http://server.test' })
  }

  get isStill(): boolean {
    return this.is !== 'shown'
  }

  /** The tag of the session whose user the page shows. */
  get shows(): string | undefined {
    const state = this.client.session.get() as Partial<ActiveSession> & { last?: ActiveSession }
    return (state.last ?? state).session
  }

  /** Follows the session, between listeners that behave badly. */
  follow(): void {
    const { session } = this.client
    session.subscribe(() => {
      throw this.fault
    })
    const stop = session.subscribe(() => {
      this.once++
      stop()
    })
    const count = (): void => void this.counted++
    const stopCounting = session.subscribe(count)
    session.subscribe(count)
    stopCounting()
    session.subscribe((isOther) => {
      this.told.push({ state: session.get(), isOther })
      this.#browser.onTold(this)
    })
  }

  event(name: string): void {
    for (const listener of this.listeners.get(name) ?? []) listener({ persisted: true })
  }

  #globals(): Record<(typeof GLOBALS)[number], unknown> {
    const browser = this.#browser
    const { time } = browser
    const page = {
      navigator: browser.navigatorOf(this),
      location: { href: 'http://server.test/' },
      reportError: (error: unknown) => browser.onError(error),
      addEventListener: (name: string, listener: (event: object) => void, { signal }: { signal: AbortSignal }) => {
        const all = this.listeners.get(name) ?? new Set()
        this.listeners.set(name, all.add(listener))
        signal.addEventListener('abort', () => all.delete(listener))
      },
    }
    const later = (call: () => void, ms = 0): unknown => time.later(ms, call, this, true)
    const every = (call: () => void, ms: number): unknown => {
      const timer = { at: 0, current: undefined as unknown }
      const again = (): void => {
        timer.current = time.later(ms, () => (again(), call()), this, true)
      }
      again()
      return timer
    }
    const random = Object.assign(Object.create(Math) as Math, { random: () => browser.random() })
    const now = (): number => time.now + time.wrongMs
    return {
      globalThis: page,
      Date: Object.assign(function () {}, { now, parse: Date.parse }),
      Math: random,
      performance: { now: () => time.now - time.sleptMs },
      setTimeout: later,
      clearTimeout: (timer: unknown) => time.cancel(timer),
      setInterval: every,
      clearInterval: (timer: { current: unknown } | undefined) => time.cancel(timer?.current),
      AbortSignal: {
        any: (signals: AbortSignal[]) => AbortSignal.any(signals),
        timeout: (ms: number) => {
          const late = new AbortController()
          time.later(ms, () => late.abort(new DOMException('late', 'TimeoutError')))
          return late.signal
        },
      },
      BroadcastChannel: browser.channelOf(this),
      WebSocket: browser.socketOf(this),
      fetch: (url: string, init: RequestInit) => browser.fetch(this, url.replace('http://server.test', ''), init),
    }
  }
}
