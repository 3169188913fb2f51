import type { CandlePoint, Point } from '../../../../client/dist/client/series.js'
import { candlesOf } from '../losing-socket.ts'
import { Tab, type TabHost } from './tab.ts'
import { VirtualTime } from './virtual-time.ts'

/** What may happen to a frame, to the page when one passes, and to the connection. */
export const FRAME_FAULTS = [
  'is lost',
  'is late',
  'is very late',
  'breaks off',
  'meets a restart',
  'meets a limit',
  'finds a page that sleeps',
  'finds a page that naps',
  'finds a page that is offline',
  'finds a page that is left',
] as const
export type FrameFault = (typeof FRAME_FAULTS)[number]

type Frame = Readonly<Record<string, unknown>>

const WAY_MS = 20
const SECOND_MS = 1000
export const GRANULARITY = 60

interface Subscription {
  readonly req_id: unknown
  readonly id: string
  readonly isCandles: boolean
}

/** A connection of the page, at both of its ends. */
class FeedSocket {
  readyState = 0
  readonly bufferedAmount = 0
  onopen: (() => void) | null = null
  onmessage: ((event: { data: string }) => void) | null = null
  onclose: ((event: { code: number; reason: string }) => void) | null = null
  isDead = false
  /** What the trading service sends on this connection, by what was asked for. */
  readonly subscriptions = new Map<string, Subscription>()
  readonly #network: FeedNetwork
  #arrivesAt = [0, 0]

  constructor(network: FeedNetwork) {
    this.#network = network
    network.time.later(WAY_MS, () => {
      if (!network.isOnline) return this.ends(1006)
      this.#arrives(1, () => {
        this.readyState = 1
        this.onopen?.()
      })
    })
  }

  send(text: string): void {
    this.#pass(0, () => this.#network.serve(this, JSON.parse(text) as Frame))
  }

  says(message: Frame): void {
    this.#pass(1, () => this.onmessage?.({ data: JSON.stringify(message) }))
  }

  close(): void {
    this.readyState = 3
    this.#network.sockets.delete(this)
  }

  ends(code: number, reason = ''): void {
    this.#network.sockets.delete(this)
    this.#arrives(1, () => {
      this.readyState = 3
      this.onclose?.({ code, reason })
    })
  }

  #pass(way: 0 | 1, deliver: () => void): void {
    const fault = this.#network.strikes(this)
    if (fault === 'is lost') this.isDead = true
    const ms = fault === 'is very late' ? 20_007 : fault === 'is late' ? 3000 : WAY_MS
    this.#arrives(way, deliver, ms)
  }

  /** What is sent on one connection arrives in order. */
  #arrives(way: 0 | 1, call: () => void, ms = WAY_MS): void {
    const { time, tab } = this.#network
    this.#arrivesAt[way] = Math.max(this.#arrivesAt[way] ?? 0, time.now + ms)
    time.later(
      this.#arrivesAt[way] - time.now,
      () => this.readyState < 2 && !this.isDead && call(),
      way ? tab : undefined,
    )
  }
}

/** A page, and a trading service with a price each second, in a time of their own. Something happens to one of the frames. */
export class FeedNetwork implements TabHost {
  readonly time = new VirtualTime()
  readonly sockets = new Set<FeedSocket>()
  readonly errors: unknown[] = []
  readonly tab: Tab
  isOnline = true
  frames = 0
  /** What was sent twice on one connection. */
  readonly wrong: string[] = []
  /** Called when a frame is the one. */
  onFrame: (frame: number) => void = () => undefined
  readonly #faults: readonly { readonly at: number; readonly is: FrameFault }[]
  readonly #beganAt = this.time.now / SECOND_MS
  /** The second of the newest price. What is asked for just then comes before it or after it, and not both. */
  #newest = this.#beganAt
  #ids = 0

  constructor(...faults: readonly { readonly at: number; readonly is: FrameFault }[]) {
    this.#faults = faults
    this.tab = new Tab(this)
    this.#tick()
  }

  /** Every price so far, the first of which is older than the page. */
  get prices(): Point[] {
    const now = this.#newest
    const first = Math.max(this.#beganAt, now - 200) - 200
    return Array.from({ length: now - first + 1 }, (_, index) => ({
      epoch: first + index,
      quote: quoteAt(first + index),
    }))
  }

  get candles(): CandlePoint[] {
    return candlesOf(this.prices, GRANULARITY)
  }

  random(): number {
    return 0.5
  }

  onError(error: unknown): void {
    this.errors.push(error)
  }

  readonly onTold = (): void => undefined

  navigatorOf(): object {
    const isOnline = (): boolean => this.isOnline
    return {
      get onLine() {
        return isOnline()
      },
    }
  }

  channelOf(): unknown {
    return undefined
  }

  socketOf(): unknown {
    const open = (): FeedSocket => {
      const socket = new FeedSocket(this)
      this.sockets.add(socket)
      return socket
    }
    return function () {
      return open()
    }
  }

  fetch(): Promise<Response> {
    return Promise.resolve(Response.json({ authenticated: false, now: Math.floor(this.time.now / SECOND_MS) }))
  }

  /** Counts a frame. @returns what happens to it */
  strikes(socket: FeedSocket): FrameFault | undefined {
    const frame = this.frames++
    this.onFrame(frame)
    // A page that does little has few frames: what happens to late ones would not be over in the end.
    const isEarly = this.time.now < this.#beganAt * SECOND_MS + 40_000
    const is = isEarly ? this.#faults.find(({ at }) => at === frame)?.is : undefined
    if (is === 'breaks off') socket.ends(1006)
    if (is === 'meets a restart') socket.ends(1012, 'shutting_down;retry_after=3')
    if (is === 'meets a limit') socket.ends(4408, 'slow_consumer')
    if (is === 'finds a page that is offline') this.#offline()
    if (is === 'finds a page that is left') this.#leave()
    if (is === 'finds a page that sleeps') this.sleepsMs = 3_600_000
    if (is === 'finds a page that naps') this.sleepsMs = 20_000
    // The server has given up a browser that slept for an hour.
    if (is === 'finds a page that sleeps') for (const each of this.sockets) each.isDead = true
    return is
  }

  /** For how long the machine is about to sleep. */
  sleepsMs = 0

  async pass(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 250) {
      await this.time.pass(Math.min(left, 250))
      const { sleepsMs } = this
      this.sleepsMs = 0
      if (sleepsMs > 0) await this.time.sleep(sleepsMs)
    }
  }

  serve(socket: FeedSocket, message: Frame): void {
    const { req_id, forget, subscribe, ticks, ticks_history, style, start, count } = message
    const answer = (body: Frame): void => socket.says({ req_id, ...body })
    if ('ping' in message) return answer({ msg_type: 'ping', ping: 'pong' })
    if ('time' in message) return answer({ msg_type: 'time', time: Math.floor(this.time.now / SECOND_MS) })
    if (forget !== undefined) {
      const [key] = [...socket.subscriptions].find(([, { id }]) => id === forget) ?? []
      return answer({ msg_type: 'forget', forget: key !== undefined && socket.subscriptions.delete(key) ? 1 : 0 })
    }
    const isCandles = style === 'candles'
    const prices = this.prices.filter(({ epoch }) => epoch >= Number(start ?? 0))
    const body = ticks
      ? { msg_type: 'tick', tick: this.prices.at(-1) }
      : isCandles
        ? {
            msg_type: 'candles',
            candles: this.candles.filter(({ epoch }) => epoch >= Number(start ?? 0)).slice(-Number(count)),
          }
        : {
            msg_type: 'history',
            history: {
              times: prices.map(({ epoch }) => epoch).slice(-Number(count)),
              prices: prices.map(({ quote }) => quote).slice(-Number(count)),
            },
          }
    if (!subscribe) return answer(body)
    const key = JSON.stringify([ticks, ticks_history, style])
    if (socket.subscriptions.has(key)) return answer({ error: { code: 'AlreadySubscribed', message: 'already' } })
    const id = `s${++this.#ids}`
    socket.subscriptions.set(key, { req_id, id, isCandles })
    answer({ ...body, subscription: { id } })
  }

  #tick(): void {
    this.time.later(SECOND_MS, () => {
      this.#newest++
      for (const socket of this.sockets)
        for (const subscription of socket.subscriptions.values()) this.#price(socket, subscription)
      this.#tick()
    })
  }

  #price(socket: FeedSocket, { req_id, id, isCandles }: Subscription): void {
    if (socket.isDead) return
    const { epoch = 0, ...last } = this.candles.at(-1) ?? {}
    const body = isCandles
      ? { msg_type: 'ohlc', ohlc: { ...last, open_time: epoch } }
      : { msg_type: 'tick', tick: this.prices.at(-1) }
    socket.says({ req_id, ...body, subscription: { id } })
  }

  #offline(): void {
    const turn = (isOnline: boolean): void => {
      this.isOnline = isOnline
      this.tab.event(isOnline ? 'online' : 'offline')
    }
    this.time.later(0, () => turn(false))
    this.time.later(7000, () => turn(true))
  }

  #leave(): void {
    this.time.later(0, () => {
      this.tab.event('pagehide')
      this.tab.is = 'away'
    })
    this.time.later(30_000, () => {
      this.tab.is = 'shown'
      this.tab.event('pageshow')
    })
  }
}

/** The price of a second. No two that are near are equal. */
const quoteAt = (epoch: number): number => epoch % 1000
