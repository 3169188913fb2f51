import type { PublicSocket } from '../../../../client/dist/client.js'
import type { Series, SeriesState } from '../../../../client/dist/client/series.js'
import { untyped } from '../untyped.ts'
import { FeedNetwork, GRANULARITY, type FrameFault } from './feed-network.ts'

/** What the page does when a frame passes. */
export const ACTS = [
  'goes on',
  'stops all',
  'closes its socket',
  'closes its client',
  'begins again',
  'begins again later',
] as const
type Act = (typeof ACTS)[number]

/** What happens in a walk: two things to frames, and one that the page does. */
export interface FeedWalk {
  readonly faults: readonly { readonly at: number; readonly is: FrameFault }[]
  readonly act: Act
  readonly at: number
}

/** A page is left for half a minute; connections that are lost are noticed and opened again sooner. */
const CALM_MS = 110_050
const COUNT = 30
const CANDLES = 3

/** A page with a stream, two charts and a request. */
class FeedPage {
  readonly #network: FeedNetwork
  readonly #socket: PublicSocket
  #isOver = false
  readonly #seen: [id: unknown, epoch: number][] = []
  #stops: (() => void)[] = []
  #charts: [prices: Series<{ epoch: number }>, candles: Series<{ epoch: number }>] | undefined
  /** How the request has ended. */
  #reply = 'never'

  constructor(network: FeedNetwork) {
    this.#network = network
    this.#socket = network.tab.client.publicSocket()
    void this.#socket.request({ time: 1 }).then(
      () => (this.#reply = 'answered'),
      () => (this.#reply = 'failed'),
    )
    this.#begin()
  }

  act(act: Act): void {
    const { tab, time } = this.#network
    if (act === 'goes on') return
    this.#isOver = !act.startsWith('begins')
    if (act === 'closes its socket') return this.#socket.close()
    if (act === 'closes its client') return tab.client.close()
    for (const stop of this.#stops) stop()
    if (act === 'begins again') this.#begin()
    if (act === 'begins again later') time.later(150, () => this.#begin(), tab, true)
  }

  #begin(): void {
    const { tab } = this.#network
    const socket = this.#socket
    const stop = untyped(socket).subscribe(
      { ticks: 'R_100' },
      ({ req_id, tick }) => {
        if (this.#isOver) this.#wrong('a stopped stream goes on')
        this.#seen.push([req_id, (tick as { epoch: number }).epoch])
      },
      () => undefined,
    )
    const prices = tab.series(socket, { symbol: 'R_100', style: 'ticks', count: COUNT })
    const candles = tab.series(socket, { symbol: 'R_100', style: 'candles', granularity: GRANULARITY, count: CANDLES })
    prices.subscribe(() => this.#look(prices.get(), 1))
    candles.subscribe(() => this.#look(candles.get(), GRANULARITY))
    this.#charts = [prices, candles]
    this.#stops = [stop, () => prices.stop(), () => candles.stop()]
  }

  #wrong(what: string): void {
    this.#network.wrong.push(what)
  }

  #look({ points, gap, error }: SeriesState<{ readonly epoch: number }>, step: number): void {
    if (this.#isOver && !error) this.#wrong('a stopped chart goes on')
    for (const [index, { epoch }] of points.entries()) {
      const before = points[index - 1]?.epoch ?? epoch - step
      const isGap = gap !== undefined && gap.from === before && gap.to === epoch
      if (epoch - before !== step && !isGap) this.#wrong(`a chart goes from ${before} to ${epoch}`)
    }
  }

  /** What must be so once nothing has happened for a while. */
  async end(): Promise<void> {
    const { tab, time, sockets, errors } = this.#network
    const open = (): number => [...sockets].reduce((sum, { subscriptions }) => sum + subscriptions.size, 0)
    if (this.#reply === 'never') this.#wrong('a request is never settled')
    if (this.#isOver && open() > 0) this.#wrong(`${open()} subscriptions are left`)
    if (!this.#isOver) this.#lookAtAll(open())
    for (const stop of this.#stops) stop()
    this.#isOver = true
    this.#socket.close()
    await this.#network.pass(2500)
    const listeners = [...tab.listeners.values()].reduce((sum, { size }) => sum + size, 0)
    const left = [sockets.size, time.of(tab), listeners]
    if (left.some((count) => count > 0)) this.#wrong(`sockets, timers and listeners are left: ${left.join()}`)
    if (errors.length > 0) this.#wrong(String(errors[0]))
  }

  #lookAtAll(subscriptions: number): void {
    const { prices, candles } = this.#network
    const [shownPrices, shownCandles] = this.#charts ?? []
    if (!isEndOf(shownPrices?.get().points ?? [], prices, COUNT)) this.#wrong('prices are missing')
    if (!isEndOf(shownCandles?.get().points ?? [], candles, CANDLES)) this.#wrong('candles are missing')
    if (this.#seen.at(-1)?.[1] !== prices.at(-1)?.epoch) this.#wrong('the stream is silent')
    for (const [index, [id, epoch]] of this.#seen.entries()) {
      const [idBefore, before] = this.#seen[index - 1] ?? [undefined, 0]
      if (id === idBefore && epoch !== before + 1) this.#wrong(`a stream goes from ${before} to ${epoch}`)
    }
    if (subscriptions !== 2) this.#wrong(`there are ${subscriptions} subscriptions`)
    const { state } = this.#socket.status()
    if (state !== 'open') this.#wrong(`the socket is ${state}`)
  }
}

function isEndOf(shown: readonly unknown[], all: readonly unknown[], count: number): boolean {
  return JSON.stringify(shown) === JSON.stringify(all.slice(-count))
}

/** @returns what is wrong */
export async function walkFeed({ faults, act, at }: FeedWalk): Promise<readonly string[]> {
  const network = new FeedNetwork(...faults)
  const page = new FeedPage(network)
  network.onFrame = (frame) => {
    if (frame === at) network.time.later(0, () => page.act(act), network.tab)
  }
  await network.pass(CALM_MS)
  await page.end()
  return network.wrong
}
