import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { WebSocket } from 'ws'
import type { ScriptedUpstream } from '../../upstream/scripted-upstream.ts'
import { Connection, type UpstreamStream } from './connection.ts'
import { Answers } from './answers.ts'
import { Dice } from './dice.ts'
import type { Market } from './market.ts'
import type { Loss, Order } from './script.ts'

/** How long a silent connection stays. */
const SILENT_MS = 300
/** More than the server reads, whosever message it is. */
const HUGE = Buffer.alloc(4_500_000, ' ')
/** So many prices at most does a connection not know yet. */
const MAX_LAG = 40

/** How upstream behaves. */
export interface Behaviour {
  /**
   * `shared`: prices and answers are sent at once. `late`: each connection knows a part of the prices, so that a history may
   * overtake its stream or be overtaken; answers wait for an order of the script.
   */
  readonly clock: 'shared' | 'late'
  /** Whether connections break, answers are lost or come twice, and streams end. */
  readonly losses: boolean
  /** Whether requests are refused at random. */
  readonly refusals: boolean
}

/** Upstream, which does what a script orders, and what its behaviour allows. */
export class RandomUpstream {
  readonly #market: Market
  readonly #scripted: ScriptedUpstream
  #dice = new Dice(0)
  readonly #answers: Answers
  readonly #connections: Connection[] = []
  readonly #held: Duplex[] = []
  #opened = 0
  #handshakes: (Order & { do: 'handshakes' })['how'] = 'open'

  constructor(scripted: ScriptedUpstream, market: Market, behaviour: Behaviour) {
    this.#scripted = scripted
    this.#market = market
    this.#answers = new Answers(market, behaviour)
    this.#answers.catchUp = (connection, symbol, place) => this.#tell(connection, symbol, place)
    scripted.onUpgrade = (...upgrade) => this.#upgrade(...upgrade)
    scripted.onSocket = (socket) => this.#accept(socket)
  }

  /** The streams that it sends, by name. */
  get running(): string[] {
    return this.#connections
      .flatMap((connection) => connection.running())
      .map(({ subject }) => subject.name)
      .toSorted()
  }

  /** Begins a session. @param seed of what it decides by itself */
  begin(seed: number): void {
    this.#dice = new Dice(seed)
    this.#answers.begin(this.#dice)
  }

  obey(order: Order): void {
    const connections = this.#connections.filter(({ isOpen }) => isOpen)
    const chosen = 'connection' in order ? connections[order.connection % connections.length] : undefined
    switch (order.do) {
      case 'move':
        for (const symbol of order.symbols) this.#market.move(symbol, order.times, order.seconds)
        for (const connection of connections) {
          const lag = this.#answers.isLate ? MAX_LAG : 0
          for (const symbol of order.symbols) this.#tell(connection, symbol, this.#market.now(symbol) - lag)
        }
        return
      case 'tell':
        for (const connection of connections.filter((_, index) => (order.which >> (index % 8)) & 1))
          for (const [symbol, known] of connection.known) this.#tell(connection, symbol, known + order.count)
        return
      case 'answer':
        return this.#answers.give(order.count)
      case 'say':
        return chosen?.send(order.text, false, order.isBinary ? 2 : 1)
      case 'end':
        return void (chosen && this.#end(chosen, order.stream))
      case 'lose':
        return void (chosen && this.#lose(chosen, order.how))
      case 'loseAll':
        for (const connection of connections) this.#lose(connection, order.how)
        return
      case 'handshakes':
        this.#handshakes = order.how
        if (order.how === 'open') for (const socket of this.#held) socket.destroy()
    }
  }

  /**
   * Behaves from now on, and says all that it knows. Connections on which something will never be answered are lost, and so are those
   * whose close frame is stuck in the middle of a split message, which the server would wait for.
   */
  calm(): void {
    this.#answers.isCalm = true
    this.obey({ do: 'handshakes', how: 'open' })
    for (const { socket, isOwing, isSilent, isOpen } of this.#connections)
      if (isOwing || isSilent || !isOpen) socket.terminate()
    this.#answers.give(Infinity)
    this.obey({ do: 'tell', which: 255, count: Infinity })
  }

  /** Resolves once the server has read all that was sent. */
  async settled(): Promise<void> {
    await Promise.all(this.#connections.map((connection) => connection.settled()))
  }

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    if (this.#handshakes === 'refuse') socket.end('HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n')
    else if (this.#handshakes === 'hang') this.#held.push(socket)
    else this.#scripted.accept(request, socket, head)
  }

  #accept(socket: WebSocket): void {
    const connection = new Connection(socket, this.#dice.of(`layout ${++this.#opened}`))
    this.#connections.push(connection)
    socket.on('message', (data: Buffer) => this.#answers.asked(connection, data.toString()))
    socket.on('close', () => {
      this.#connections.splice(this.#connections.indexOf(connection), 1)
      for (const stream of connection.streams) this.#answers.over(stream)
    })
    if (this.#handshakes === 'slam') socket.close(1013)
  }

  /** Sends a connection the prices of a symbol up to a place. */
  #tell(connection: Connection, symbol: string, place: number): void {
    const known = this.#answers.known(connection, symbol)
    const last = Math.min(place, this.#market.now(symbol))
    if (last <= known) return
    const streams = connection.running().filter(({ subject }) => subject.symbol === symbol)
    // Several prices arrive in one piece.
    connection.wire.cork()
    for (let at = known + 1; at <= last; at++) {
      connection.known.set(symbol, at)
      for (const stream of streams) this.#answers.send(connection, stream, at)
    }
    connection.wire.uncork()
  }

  #end(connection: Connection, index: number): void {
    const running = connection.running()
    const stream: UpstreamStream | undefined = running[index % running.length]
    if (stream !== undefined) this.#answers.end(connection, stream)
  }

  #lose(connection: Connection, how: Loss): void {
    const { socket, wire } = connection
    switch (how) {
      case 'close':
        return socket.close(1001)
      case 'reset':
        return socket.terminate()
      case 'half':
        return void wire.end()
      case 'invalid':
        return connection.send(Buffer.from([0xff]))
      case 'huge':
        return connection.send(HUGE)
      case 'silent':
        connection.isSilent = true
        setTimeout(() => socket.terminate(), SILENT_MS)
    }
  }
}
