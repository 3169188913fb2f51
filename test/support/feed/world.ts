import type { Test } from 'tap'
import type { WebSocket } from 'ws'
import type { BrowserSocket } from '../browser/browser-socket.ts'
import { until } from '../time/until.ts'
import { PUBLIC } from '../user.ts'
import { startWorld, type World } from '../world.ts'

/** A parsed message. */
export type Message = Record<string, unknown>

/** The names by which requests are found. */
const OPERATIONS = new Set(
  'ticks ticks_history active_symbols contracts_for contracts_list trading_times time ping forget forget_all proposal'.split(
    ' ',
  ),
)

/** A request as upstream got it. */
export interface UpstreamRequest {
  readonly message: Message
  readonly text: string
  readonly socket: WebSocket
  /** Taken by {@link FeedUpstream.next}. */
  isTaken: boolean
}

/** The feed's upstream, scripted by a test: it keeps what it was asked, and answers what the test says. */
class FeedUpstream {
  readonly requests: UpstreamRequest[] = []
  readonly sockets: WebSocket[] = []
  /** Answers requests without a test waiting for them. Returns nothing for those that it leaves to the test. */
  auto: (message: Message, request: UpstreamRequest) => Message | undefined = () => undefined

  /** Listens to a new socket. */
  accept(socket: WebSocket): void {
    this.sockets.push(socket)
    socket.on('message', (data: Buffer) => {
      const text = data.toString()
      const message = parsed(text)
      const request = { message, text, socket, isTaken: false }
      this.requests.push(request)
      const answer = this.auto(message, request)
      if (answer === undefined) return
      request.isTaken = true
      reply(request, answer)
    })
  }

  /** The requests with this operation so far. */
  asked(operation: string): UpstreamRequest[] {
    return this.requests.filter(({ message }) => operation in message)
  }

  /** The next request with this operation, and this value of it, that was not taken yet. */
  async next(operation: string, value?: unknown): Promise<UpstreamRequest> {
    const find = (): UpstreamRequest | undefined =>
      this.asked(operation).find(
        ({ isTaken, message }) => !isTaken && (value === undefined || message[operation] === value),
      )
    await until(() => find() !== undefined, `upstream is asked for ${operation} ${JSON.stringify(value)}`)
    const request = find()
    if (request === undefined) throw new Error('it was there')
    request.isTaken = true
    return request
  }

  /** Has a browser send a request. @returns it as it arrives here */
  askedBy(browser: FeedBrowser, message: Message): Promise<UpstreamRequest> {
    browser.send(message)
    const operation = Object.keys(message).find((key) => OPERATIONS.has(key)) ?? ''
    const value = message[operation]
    return this.next(operation, typeof value === 'object' ? undefined : value)
  }

  /** Has a browser send a request, answers it, and has the browser read the answer. @returns the request as it arrived here */
  async serve(browser: FeedBrowser, message: Message, answer: Message): Promise<UpstreamRequest> {
    const request = await this.askedBy(browser, message)
    reply(request, answer)
    await browser.next()
    return request
  }
}

/** Sends a message that belongs to a request, as upstream does. */
export function reply({ message, socket }: UpstreamRequest, body: Message): void {
  socket.send(JSON.stringify({ echo_req: message, ...body, req_id: message['req_id'] }))
}

/** A tick of a subscription. */
export function price(quote: number, id = 'sub-1', symbol = 'R_100', epoch = quote): Message {
  return { msg_type: 'tick', subscription: { id }, tick: { epoch, id, quote, symbol } }
}

/** How upstream answers subscriptions to ticks, and forgets. @param quote of each price */
export function served({ ticks, forget }: Message, quote = 1): Message {
  return forget === undefined ? price(quote, `id-${String(ticks)}`, String(ticks)) : { msg_type: 'forget', forget: 1 }
}

/** The end of a history of ticks, one a second. */
export function history(last: number): Message {
  return { msg_type: 'history', history: { prices: [last - 1, last], times: [last - 1, last] } }
}

/** How upstream refuses. */
export function refusal(code: string): Message {
  return { msg_type: 'tick', error: { code, message: 'of upstream' } }
}

/** A request that the server answers by itself. */
export const OF_NOBODY = { forget: 'of nobody' }

/** How browsers are closed that may have missed something. */
export const LOST = { code: 1013, reason: 'upstream_lost' }

/** Sends a tick of a subscription. */
export function tick(request: UpstreamRequest, quote: number, epoch = quote, id = 'sub-1', symbol = 'R_100'): void {
  reply(request, price(quote, id, symbol, epoch))
}

/** The prices of messages, to compare all of them: `t.match` takes a list that is longer than its pattern. */
export function quotes(messages: readonly Message[]): unknown[] {
  return messages.map(({ tick }) => (tick as Message)['quote'])
}

/** A browser of the feed. */
export class FeedBrowser {
  readonly client: BrowserSocket
  #read = 0

  constructor(client: BrowserSocket) {
    this.client = client
  }

  send(message: Message | string): void {
    this.client.socket.send(typeof message === 'string' ? message : JSON.stringify(message))
  }

  /** The next message that was not read yet. */
  async next(): Promise<Message> {
    return parsed(await this.nextText())
  }

  /** The next message as its text. */
  async nextText(): Promise<string> {
    const index = this.#read++
    const received = await this.client.count(index + 1)
    const message = received[index]
    if (message === undefined) throw new Error(`closed: ${JSON.stringify(await this.client.closed)}`)
    return message.data.toString()
  }

  /** Sends a request, and returns the next message. */
  async ask(message: Message | string): Promise<Message> {
    this.send(message)
    return this.next()
  }

  /**
   * The messages that were not read yet, once everything that was sent so far has arrived.
   * @param request one that the server answers by itself: a browser that is about to be closed gets no pong
   */
  async rest(request: Message = { ping: 1 }): Promise<Message[]> {
    this.send({ ...request, req_id: 999_999 })
    const { received } = this.client
    await until(() => received.slice(this.#read).some(({ data }) => isLast(data)), 'the answer to the last request')
    const end = received.findIndex(({ data }, index) => index >= this.#read && isLast(data))
    const rest = received.slice(this.#read, end).map(({ data }) => parsed(data.toString()))
    this.#read = end + 1
    return rest
  }
}

/** A server with PUBLIC_FEED=shared between a scripted upstream and browsers. */
export interface FeedWorld extends World<'scripted'> {
  readonly market: FeedUpstream
  readonly metric: (name: string) => Promise<Map<string, number>>
  /** @param address of the browser, as a trusted proxy names it */
  readonly join: (address?: string) => Promise<FeedBrowser>
}

/** A browser with a living stream of a symbol, and upstream's request. */
export async function subscribed({ join, market }: FeedWorld, ticks: string) {
  const browser = await join()
  return { browser, request: await market.serve(browser, { ticks, subscribe: 1, req_id: 1 }, served({ ticks })) }
}

/** Starts a world that ends with the test. */
export async function feedWorld(t: Test, settings: Record<string, string> = {}): Promise<FeedWorld> {
  const world = await startWorld(t, { upstream: 'scripted', settings: { PUBLIC_FEED: 'shared', ...settings } })
  const market = new FeedUpstream()
  world.upstream.onSocket = (socket) => market.accept(socket)
  return {
    ...world,
    market,
    join: async (address) => {
      const headers = address === undefined ? {} : { 'x-forwarded-for': address }
      return new FeedBrowser(await world.socket(PUBLIC, { headers }).opened())
    },
  }
}

function isLast(data: Buffer): boolean {
  return parsed(data.toString())['req_id'] === 999_999
}

function parsed(text: string): Message {
  try {
    return JSON.parse(text) as Message
  } catch {
    return {}
  }
}
