import type { BrowserSocket, Closed } from '../browser/browser-socket.ts'
import type { Message } from './world.ts'
import { SYMBOLS } from './chaos-market.ts'

/** Messages shown with a fault. */
const SHOWN = 12
/** How long a browser reads nothing at times. */
const SLOW_MS = 150

interface Request {
  readonly reqId: number
  readonly message: Message
  state: 'asked' | 'live' | 'over'
  /** The newest price of each of its streams, by subscription id. */
  readonly newest: Map<string, number>
  /** The streams at upstream, by subscription id. */
  readonly generations: Map<string, unknown>
  isBeingForgotten: boolean
}

let reqIds = 0

/** A browser that asks at random, and checks all that it gets. */
export class ChaosBrowser {
  readonly client: BrowserSocket
  readonly faults: string[] = []
  end: Closed | undefined
  isLeaving = false
  hasSubscribed = false
  /** Prices may be left out for it. */
  isSlow = false
  readonly #requests = new Map<number, Request>()
  readonly #texts: string[] = []
  readonly #random: () => number

  /** @param deliver takes what it receives to it */
  constructor(
    client: BrowserSocket,
    random: () => number,
    deliver: (text: string, take: (text: string) => void) => void,
  ) {
    this.client = client
    this.#random = random
    const take = (text: string): void => this.#take(text)
    client.socket.on('message', (data: Buffer) => deliver(data.toString(), take))
    client.socket.on('close', (code, reason) => (this.end = { code, reason: reason.toString() }))
  }

  /** What it still waits for: answers, and prices that are due. @param price the newest of each symbol */
  late(price: ReadonlyMap<string, number>): string[] {
    if (this.end !== undefined) return []
    return [...this.#requests.values()].flatMap(({ message, state, newest, generations }) => {
      const text = JSON.stringify(message)
      if (state === 'asked') return [`no answer to ${text}`]
      const least = (price.get(String(message['ticks'] ?? message['ticks_history'])) ?? 0) - 20
      const isStuck = state === 'live' && [...newest.values()].some((value) => value < least)
      return isStuck ? [`no more of ${text}, ${JSON.stringify([...newest, ...generations])}`] : []
    })
  }

  /** Whether all that it has asked has been answered. */
  get isIdle(): boolean {
    return [...this.#requests.values()].every(({ state }) => state !== 'asked')
  }

  leave(): void {
    this.isLeaving = true
    if (this.#random() < 0.5) this.client.socket.close()
    else this.client.socket.terminate()
  }

  /** Does something. @param isReader whether it has no streams */
  act(isReader: boolean): void {
    const { socket } = this.client
    if (socket.readyState !== socket.OPEN) return
    const dice = this.#random()
    const symbol = this.#pick(SYMBOLS) ?? ''
    if (dice < 0.35 || isReader) this.#read(symbol)
    else if (dice < 0.7) this.#subscribe(symbol)
    else if (dice < 0.9) this.#forget()
    else if (dice < 0.94) this.#send({ forget_all: this.#pick<unknown>(['ticks', 'candles', ['ticks', 'candles']]) })
    else if (dice < 0.97) {
      this.isSlow = true
      socket.pause()
      setTimeout(() => socket.resume(), SLOW_MS)
    } else this.leave()
  }

  #pick<Value>(list: readonly Value[]): Value | undefined {
    return list[Math.floor(this.#random() * list.length)]
  }

  #send(message: Message = {}): void {
    const reqId = ++reqIds
    const text = JSON.stringify({ ...message, req_id: reqId })
    this.#requests.set(reqId, {
      reqId,
      message,
      state: 'asked',
      newest: new Map(),
      generations: new Map(),
      isBeingForgotten: false,
    })
    this.#texts.push(`> ${text}`)
    this.client.socket.send(text)
  }

  #read(symbol: string): void {
    const history = { ticks_history: symbol, end: 'latest', count: 4 }
    const lists = [{ active_symbols: 'brief' }, { contracts_for: symbol }, { trading_times: 'today' }]
    this.#send(this.#pick<Message>([{ time: 1 }, { ping: 1 }, { ticks: symbol }, history, ...lists]))
  }

  #subscribe(symbol: string): void {
    this.hasSubscribed = true
    const next = SYMBOLS[SYMBOLS.indexOf(symbol) + 1]
    const history = { ticks_history: symbol, end: 'latest', count: this.#pick([4, 5]) }
    const candles = { ticks_history: symbol, end: 'latest', style: 'candles', granularity: 60 }
    const messages: Message[] = [{ ticks: symbol }, { ticks: symbol }, history, history, candles]
    if (next !== undefined) messages.push({ ticks: [symbol, next] })
    this.#send({ ...this.#pick(messages), subscribe: 1 })
  }

  #forget(): void {
    const live = [...this.#requests.values()].filter(
      ({ state, isBeingForgotten }) => state === 'live' && !isBeingForgotten,
    )
    const request = this.#pick(live)
    const id = this.#pick([...(request?.newest.keys() ?? [])])
    if (request === undefined || id === undefined) return
    request.isBeingForgotten = true
    this.#send({ forget: id })
  }

  #take(text: string): void {
    this.#texts.push(`< ${text}`)
    const message = JSON.parse(text) as Message
    const request = this.#requests.get(Number(message['req_id']))
    const echo = JSON.stringify({ ...request?.message, req_id: request?.reqId })
    if (request === undefined || JSON.stringify(message['echo_req']) !== echo) return this.#fault('not asked')
    if (request.state === 'over') return this.#fault('after the last')
    const id = (message['subscription'] as { readonly id: string } | undefined)?.id
    const isPart = id !== undefined && Array.isArray(request.message['ticks'])
    if (message['error'] !== undefined && isPart && request.state === 'live') return void request.newest.delete(id)
    if (message['error'] !== undefined || request.message['subscribe'] !== 1) request.state = 'over'
    else if (id === undefined) this.#fault('no id')
    else this.#follow(request, id, message)
    if (message['forget'] === 1) this.#forgotten(String(request.message['forget']))
    if (Array.isArray(message['forget_all'])) this.#allForgotten(request)
  }

  #follow(request: Request, id: string, message: Message): void {
    request.state = 'live'
    const { history, candles, tick, ohlc, generation } = message as {
      readonly history?: { readonly times: readonly number[] }
      readonly candles?: readonly { readonly open: number }[]
      readonly tick?: { readonly quote: number }
      readonly ohlc?: { readonly open: number }
      readonly generation?: number
    }
    const { newest, generations } = request
    const last = newest.get(id)
    const price = history?.times.at(-1) ?? candles?.at(-1)?.open ?? tick?.quote ?? ohlc?.open ?? 0
    newest.set(id, price)
    const isHistory = history !== undefined || candles !== undefined
    if (last === undefined && !isHistory && !('ticks' in request.message)) this.#fault('no history')
    if (last !== undefined && (this.isSlow ? price <= last : price !== last + 1)) this.#fault(`${price} after ${last}`)
    if (isHistory) return
    if ((generations.get(id) ?? generation) !== generation) this.#fault('another stream with the same id')
    generations.set(id, generation)
  }

  #forgotten(id: string): void {
    for (const request of this.#requests.values()) {
      if (request.state !== 'live' || !request.isBeingForgotten || !request.newest.delete(id)) continue
      request.isBeingForgotten = false
      if (!Array.isArray(request.message['ticks'])) request.state = 'over'
    }
  }

  #allForgotten({ reqId, message }: Request): void {
    const types = new Set<unknown>([message['forget_all']].flat())
    for (const request of this.#requests.values()) {
      const type = request.message['style'] ?? 'ticks'
      // One without an answer is lost: the browser is about to be closed.
      if (request.reqId < reqId && request.state === 'live' && types.has(type)) request.state = 'over'
    }
  }

  #fault(what: string): void {
    this.faults.push([what, ...this.#texts.slice(-SHOWN)].join('\n  '))
  }
}
