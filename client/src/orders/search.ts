import type { OrderSocket, SentOrder } from '../core/base/order-shape.ts'
import type { SocketError } from '../core/base/errors.ts'
import type { Message } from '../core/sockets/socket-status.ts'
import { contractIdsIn, contractsOf, type FoundContract } from './contracts.ts'
import type { Sameness } from './decimal.ts'
import { movedMs, noteContract, outcomeOf, rivalsOf } from './rivals.ts'
import { fits, termsOf, type Period } from './terms.ts'

/** What became of an order whose answer was lost. */
export type Fate =
  /** It was executed: exactly one contract on the account fits it, which was not known before. */
  | { readonly is: 'made'; readonly contract: FoundContract }
  /**
   * Nothing on the account fits it since it was sent (`since`, comparable with `Date.now()`), up to now. This does not prove that it
   * was not executed, or will not be.
   */
  | { readonly is: 'not_seen'; readonly since: number }
  /** It cannot be told which of these contracts it has bought, if any. */
  | { readonly is: 'ambiguous'; readonly candidates: readonly FoundContract[] }

/** How long the connection must have been open before an order counts as not seen. */
const WATCH_MS = 15_000
/** How much the clocks of the trading service may differ from each other. */
const SLACK_MS = 2000
/** An order is executed within this time after it was sent, if at all. */
const EXECUTED_MS = 120_000
/** How long an answer is waited for. */
const ANSWER_MS = 10_000
const SECOND = 1000
const MAX_READS = 3

const PORTFOLIO = { portfolio: 1 }
const ENDED = { profit_table: 1, description: 1, limit: 100, sort: 'DESC' }
const PURCHASES = { statement: 1, action_type: 'buy', description: 1, limit: 100 }

interface Candidate {
  readonly contract: FoundContract
  readonly fit: Sameness
}

/** Looks for the contract of an order on its account. */
export class Search {
  readonly #order: SentOrder
  /** That of the page's core, of which this module may have no copy of its own. */
  readonly #SocketError: typeof SocketError
  readonly #terms
  readonly #signal: AbortSignal | undefined
  readonly #socket: OrderSocket
  /** By id, as a text. */
  readonly #contracts = new Map<string, FoundContract>()
  /** The contracts of which the page had heard when the order was sent. */
  readonly #known: ReadonlySet<string>
  #period: Period = { from: -Infinity, to: Infinity, likely: [] }
  #reads = 0
  /** True once both the open contracts and those that have ended have been read. */
  #hasLooked = false
  /** True while the trading service tells of purchases on this connection. */
  #isTold = false
  /** True while no purchase can have been missed since the account was read. */
  #isComplete = false
  #failure: unknown
  /** The refusal of the order by the trading service, if it has come too late for the call itself. */
  #refusal: SocketError | undefined
  #fate: Fate | undefined
  /** Called after every change. */
  #wake = (): void => undefined

  constructor(order: SentOrder, error: SocketError, signal: AbortSignal | undefined) {
    this.#order = order
    this.#SocketError = error.constructor as typeof SocketError
    this.#terms = termsOf(order)
    this.#signal = signal
    this.#known = new Set(order.before.flatMap(contractIdsIn))
    this.#socket = order.account.socket()
  }

  async run(): Promise<Fate> {
    const socket = this.#socket
    const wake = (): void => this.#wake()
    this.#signal?.addEventListener('abort', wake)
    try {
      for (const message of this.#order.account.log.values()) this.#take(message)
      socket.listen((message) => this.#take(message))
      socket.onStatus(() => {
        if (!/open|stale/.test(socket.status().state)) this.#isTold = this.#isComplete = false
        wake()
      })
      const told = (): void => {
        this.#isTold = true
        wake()
      }
      // If it is refused, only the last read can tell that no purchase was missed.
      socket.subscribe({ transaction: 1 } as never, told, (error) => {
        this.#isTold = this.#isComplete = false
        this.#failure = error
        wake()
      })
      while (!this.#fate) await this.#watch()
      return this.#fate
    } finally {
      this.#signal?.removeEventListener('abort', wake)
      socket.close()
    }
  }

  /** Looks at the account and watches it, until the connection is lost or the fate is known. */
  async #watch(): Promise<void> {
    await this.#until(() => this.#isOpen)
    await this.#readClock()
    if (!this.#isOpen) return
    if (!this.#hasLooked && this.#reads + 2 <= MAX_READS) {
      // A purchase between a read and a later subscription would be missed.
      this.#isComplete = this.#isTold
      const areRead = await Promise.all([this.#read(PORTFOLIO), this.#read(ENDED)])
      this.#hasLooked = !areRead.includes(false)
      this.#isComplete &&= this.#hasLooked
      this.#decide()
    }
    let isOver = false
    const timer = setTimeout(() => {
      isOver = true
      this.#wake()
    }, WATCH_MS)
    await this.#until(() => isOver || !this.#isOpen || this.#unclear !== undefined).finally(() => clearTimeout(timer))
    if (this.#fate || !this.#isOpen) return
    if (this.#unclear) await this.#read({ proposal_open_contract: 1, contract_id: this.#unclear.contract_id })
    if (!isOver) return
    if (this.#reads < MAX_READS && (await this.#read(PURCHASES))) this.#isComplete = true
    if (this.#isComplete) this.#decide(true)
    else if (this.#reads >= MAX_READS) {
      throw (
        this.#refusal ??
        this.#failure ??
        new this.#SocketError('connection_lost', 'the connection was lost too often to read the account')
      )
    }
  }

  get #isOpen(): boolean {
    return this.#socket.status().state === 'open'
  }

  /** The only contract that may fit, if not enough is known of it and it can be asked for. */
  get #unclear(): FoundContract | undefined {
    const [first, ...others] = this.#candidates()
    const isClear = first?.fit !== 'maybe' || others.length > 0
    return isClear || !this.#hasLooked || this.#reads >= MAX_READS ? undefined : first.contract
  }

  /** Waits until something is true, or the fate is known. @throws SocketError when the connection has ended */
  async #until(isTrue: () => boolean): Promise<void> {
    for (;;) {
      this.#signal?.throwIfAborted()
      if (this.#refusal) throw this.#refusal
      if (this.#fate || isTrue()) return
      if (this.#socket.status().state === 'ended') throw new this.#SocketError('ended', 'the connection has ended')
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  /** Asks for the clock of the trading service, and finds out when it has executed the order, if it has. */
  async #readClock(): Promise<void> {
    const askedAt = Date.now()
    const { time } = ((await this.#ask({ time: 1 })) ?? {}) as { time?: number }
    if (time === undefined) return
    const { sentAt } = this.#order
    const moved = movedMs(this.#order)
    const now = Date.now()
    /** The period if the clock was set by this much since the order was sent. */
    const ifSetBy = (ms: number): Pick<Period, 'from' | 'to'> => ({
      // Both this time and that of a purchase are in whole seconds.
      from: (sentAt + ms + time * SECOND - now - SECOND - SLACK_MS) / SECOND,
      to: (sentAt + ms + EXECUTED_MS + time * SECOND - askedAt + SECOND + SLACK_MS) / SECOND,
    })
    const { from } = ifSetBy(-Math.abs(moved))
    const { to } = ifSetBy(Math.abs(moved))
    // Usually all of the difference is sleep, or all of it is a clock that was set.
    this.#period = { from, to, likely: [ifSetBy(0), ifSetBy(moved)] }
  }

  /** @returns whether the answer has arrived, with which the listener has been called */
  async #read(message: Message): Promise<boolean> {
    this.#reads++
    return (await this.#ask(message)) !== undefined
  }

  async #ask(message: Message): Promise<object | undefined> {
    try {
      return await this.#socket.request(message as never, { signal: this.#signal, timeoutMs: ANSWER_MS })
    } catch (error) {
      this.#signal?.throwIfAborted()
      this.#failure = error
      return undefined
    }
  }

  #take(message: Message): void {
    const contracts = contractsOf(message)
    for (const contract of contracts) {
      const id = String(contract.contract_id)
      this.#contracts.set(id, { ...this.#contracts.get(id), ...contract })
    }
    if (contracts.length === 0 && message['msg_type'] !== 'buy') return
    this.#decide()
    this.#wake()
  }

  /** The contracts that this order may have bought: that fit it, and that no other order is known to have bought. */
  #candidates(): Candidate[] {
    const { contracts: taken } = rivalsOf(this.#order, EXECUTED_MS)
    return [...this.#contracts]
      .filter(([id]) => !this.#known.has(id) && !taken.has(id))
      .map(([, contract]) => ({ contract, fit: fits(this.#terms, contract, this.#period) }))
      .filter(({ fit }) => fit !== 'no')
  }

  /** @param isFinal false if more may become known */
  #decide(isFinal = false): void {
    const { reply, contractId } = outcomeOf(this.#order)
    const own = this.#contracts.get(contractId ?? '')
    if (own) return this.#made(own)
    if (reply?.['error']) {
      const { code, message } = reply['error'] as { code?: string; message?: string }
      this.#refusal = new this.#SocketError(String(code), message ?? '', { reply })
      return
    }
    const candidates = this.#candidates()
    const [first, ...others] = candidates
    if (first?.fit === 'yes' && others.length === 0 && rivalsOf(this.#order, EXECUTED_MS).pending.length === 0) {
      if (isFinal || this.#hasLooked) this.#made(first.contract)
    } else if (isFinal) {
      this.#fate = first
        ? { is: 'ambiguous', candidates: candidates.map(({ contract }) => contract) }
        : { is: 'not_seen', since: this.#order.sentAt }
    }
  }

  #made(contract: FoundContract): void {
    const { type, symbol } = this.#terms
    const named = { ...(type && { contract_type: type }), ...(symbol && { underlying_symbol: symbol }) }
    this.#fate = { is: 'made', contract: { ...named, ...contract } }
    noteContract(this.#order, String(contract.contract_id))
  }
}
