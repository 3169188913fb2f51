import { once } from 'node:events'
import type { Test } from 'tap'
import { WebSocketServer, type WebSocket } from 'ws'
import { createClient, type Client, type TradingSocket } from '../../../client/dist/client.js'

type Message = Readonly<Record<string, unknown>>

/** What is proposed and bought: type, symbol and stake. */
export interface Offer {
  readonly contract_type: string
  readonly underlying_symbol: string
  readonly amount: number
}

/** A contract on the account, as it is in truth. */
export interface TrueContract extends Offer {
  /** A bigint is sent as its digits. */
  readonly contract_id: number | bigint | string
  /** By the clock of the trading service, in seconds. */
  readonly purchase_time: number
  hasEnded: boolean
}

/** What happens to a purchase: whether it is executed, and the answer. */
export interface Handling {
  /** `late`: only when {@link LossyAccount.executeLate} is called. */
  readonly executes: 'at once' | 'late' | 'never'
  /** `held` keeps the answer until {@link LossyAccount.answerHeld}. */
  readonly answer: 'sent' | 'cut' | 'held' | 'refused'
}

/** A trading service with one account, which knows the truth, and loses answers as a test says. */
export class LossyAccount {
  readonly url: string
  readonly contracts: TrueContract[] = []
  /** The contract of each purchase, by its `passthrough.order`. */
  readonly truth = new Map<number, TrueContract['contract_id']>()
  /** The id of the next contract, if it is not just the next number. */
  nextId: TrueContract['contract_id'] | undefined
  /** How amounts are written, besides those of the page. */
  amount: (amount: number) => unknown = (amount) => amount
  /** How many reads of the account have arrived. */
  reads = 0
  /** How a purchase is handled, by its `passthrough.order`. */
  handling: (order: number) => Handling = () => ({ executes: 'at once', answer: 'sent' })
  /** Called with every other request. The connection is cut if it returns true. */
  cuts: (operation: string) => boolean = () => false
  /** Called with every read. It is not answered if this returns true. */
  ignores: (operation: string) => boolean = () => false
  isDown = false
  /** How many connections it has taken. */
  connections = 0
  /** How many connections it has refused while it was down. */
  refused = 0
  /** Tells nobody of purchases. */
  isSilent = false
  /** Refuses to read the account. */
  isRefusing = false
  /** How much its clock is ahead, in milliseconds. */
  aheadMs = 0
  readonly #server: WebSocketServer
  readonly #proposals = new Map<string, Offer>()
  #late: (() => void)[] = []
  #held: (() => void)[] = []
  #watching: ((contract: TrueContract) => void)[] = []
  #lastId = 1000

  constructor(server: WebSocketServer) {
    this.#server = server
    this.url = `http://127.0.0.1:${(server.address() as { port: number }).port}`
    server.on('connection', (socket) => {
      if (this.isDown) {
        this.refused++
        return socket.terminate()
      }
      this.connections++
      socket.on('message', (data: Buffer) => this.#take(fromJson(data.toString()), socket))
    })
  }

  /** A purchase that no page of the test has made: now, or that many seconds ago. */
  buyElsewhere(offer: Offer, secondsAgo = 0): TrueContract {
    return this.#execute(offer, secondsAgo)
  }

  /** Makes a proposal that nobody has asked for. */
  propose(id: string, offer: Offer): void {
    this.#proposals.set(id, offer)
  }

  cut(): void {
    this.#watching = []
    for (const socket of this.#server.clients) socket.terminate()
  }

  executeLate(): void {
    for (const execute of this.#late.splice(0)) execute()
  }

  answerHeld(): void {
    for (const answer of this.#held.splice(0)) answer()
  }

  #take(message: Message, socket: WebSocket): void {
    const { req_id, passthrough } = message
    const operation = Object.keys(message).find((key) =>
      /^(ping|time|buy|sell|proposal|transaction|portfolio|profit_table|statement|proposal_open_contract|forget)$/.test(
        key,
      ),
    )
    const send = (body: Message): void =>
      socket.send(toJson({ echo_req: message, req_id, msg_type: operation, ...body }, this.amount))
    if (operation && operation !== 'buy' && this.cuts(operation)) return this.cut()
    if (operation === 'ping') send({ ping: 'pong' })
    else if (operation === 'time') send({ time: this.#now() })
    else if (operation === 'forget') send({ forget: 1 })
    else if (operation === 'proposal') {
      const { amount, underlying_symbol } = message as unknown as Offer
      const id = `proposal-${this.#proposals.size}`
      this.propose(id, offerOf(message))
      send({ proposal: { id, ask_price: amount, payout: amount * 2, longcode: `Win if ${underlying_symbol} rises.` } })
    } else if (operation === 'transaction') {
      const subscription = { id: `transactions-${String(req_id)}` }
      send({ transaction: {}, subscription })
      this.#watching.push((contract) => send({ transaction: transactionOf(contract), subscription }))
    } else if (operation === 'buy') this.#buy(message, Number((passthrough as Message)['order']), send)
    else if (operation) {
      this.reads++
      if (this.ignores(operation)) return
      if (this.isRefusing) return send({ error: { code: 'RateLimit', message: 'You have reached the rate limit.' } })
      send({ [operation]: this.#read(operation, message) })
    }
  }

  #buy({ buy, price, parameters }: Message, order: number, send: (body: Message) => void): void {
    const offer = parameters ? offerOf(parameters as Message) : this.#proposals.get(String(buy))
    if (!offer || offer.amount > Number(price)) throw new Error('no such proposal')
    const { executes, answer } = this.handling(order)
    let contract: TrueContract | undefined
    const execute = (): void => {
      contract = this.#execute(offer)
      this.truth.set(order, contract.contract_id)
    }
    if (answer === 'cut') this.cut()
    if (executes === 'at once') execute()
    else if (executes === 'late') this.#late.push(execute)
    const reply = (): void => {
      if (answer === 'refused' || !contract) send({ error: { code: 'PriceMoved', message: 'The market has moved.' } })
      else send({ buy: { ...purchaseOf(contract), contract_id: contract.contract_id } })
    }
    if (answer === 'held') this.#held.push(reply)
    else if (answer !== 'cut') reply()
  }

  #execute(offer: Offer, secondsAgo = 0): TrueContract {
    const contract = {
      ...offer,
      contract_id: this.nextId ?? ++this.#lastId,
      purchase_time: this.#now() - secondsAgo,
      hasEnded: false,
    }
    this.nextId = undefined
    this.contracts.push(contract)
    if (!this.isSilent) for (const tell of this.#watching) tell(contract)
    return contract
  }

  #read(operation: string, message: Message): Message {
    if (operation === 'portfolio')
      return { contracts: this.contracts.filter(({ hasEnded }) => !hasEnded).map(describe) }
    if (operation === 'profit_table') {
      return {
        transactions: this.contracts
          .filter(({ hasEnded }) => hasEnded)
          .map(describe)
          .toReversed(),
      }
    }
    if (operation === 'statement') return { transactions: this.contracts.map(lineOf).toReversed() }
    const contract = this.contracts.find(({ contract_id }) => contract_id === message['contract_id'])
    return contract ? describe(contract) : {}
  }

  #now(): number {
    return Math.floor((Date.now() + this.aheadMs) / 1000)
  }
}

const AMOUNTS = /^(buy_price|payout|amount|sell_price)$/

/** Writes bigints as their digits, and the amounts of an answer as a test says. */
function toJson(message: Message, amount: (amount: number) => unknown): string {
  const { rawJSON } = JSON as unknown as { rawJSON: (digits: string) => unknown }
  const { echo_req, ...body } = message
  const written = JSON.stringify(body, (name, value: unknown) => {
    if (typeof value === 'bigint') return rawJSON(String(value))
    return AMOUNTS.test(name) && typeof value === 'number' ? amount(value) : value
  })
  const digits = (_name: string, value: unknown): unknown =>
    typeof value === 'bigint' ? rawJSON(String(value)) : value
  return `{"echo_req":${JSON.stringify(echo_req, digits)},${written.slice(1)}`
}

/** Reads integers beyond 2^53 as bigints. */
function fromJson(text: string): Message {
  return JSON.parse(text, exact) as Message
}

function exact(_name: string, value: unknown, { source = '' }: { source?: string } = {}): unknown {
  return Number.isInteger(value) && !Number.isSafeInteger(value) ? BigInt(source) : value
}

/** A payout is twice the stake. */
function offerOf({ contract_type, underlying_symbol, amount, basis }: Message): Offer {
  const stake = basis === 'payout' ? Number(amount) / 2 : Number(amount)
  return { contract_type: String(contract_type), underlying_symbol: String(underlying_symbol), amount: stake }
}

function purchaseOf({ amount, purchase_time }: TrueContract): Message {
  return { buy_price: amount, payout: amount * 2, purchase_time }
}

function describe(contract: TrueContract): Message {
  const { contract_id, contract_type, underlying_symbol } = contract
  return { contract_id, contract_type, underlying_symbol, ...purchaseOf(contract) }
}

function lineOf(contract: TrueContract): Message {
  const { contract_id, contract_type, underlying_symbol, amount, purchase_time } = contract
  const shortcode = `${contract_type}_${underlying_symbol}_${amount * 2}_${purchase_time}_5T_S0P_0`
  return { action_type: 'buy', amount: -amount, contract_id, shortcode, transaction_time: purchase_time }
}

function transactionOf(contract: TrueContract): Message {
  const { contract_id, underlying_symbol, amount, purchase_time } = contract
  return { action: 'buy', amount: -amount, contract_id, underlying_symbol, transaction_time: purchase_time }
}

/** Starts one that ends with the test, and a client that trades on it. */
export async function lossyAccount(t: Test): Promise<{
  account: LossyAccount
  client: Client
  socket: TradingSocket
  buy: (offer: Offer, order: number) => Promise<unknown>
}> {
  // The client reconnects almost at once.
  t.intercept(Math, 'random', { value: () => 0.001 })
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  await once(server, 'listening')
  const account = new LossyAccount(server)
  const client = createClient({ baseUrl: account.url })
  t.teardown(() => {
    client.close()
    account.cut()
    server.close()
  })
  const socket = client.tradingSocket('VRTC100')
  const buy = async (offer: Offer, order: number): Promise<unknown> => {
    const terms = { basis: 'stake', currency: 'USD', duration: 5, duration_unit: 't' } as const
    const { proposal } = await socket.request({ proposal: 1, ...terms, ...offer })
    return socket.command({ buy: proposal.id, price: proposal.ask_price, passthrough: { order } })
  }
  return { account, client, socket, buy }
}
