import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { WebSocket } from 'ws'
import type { Message } from './world.ts'
import type { ScriptedUpstream } from '../upstream/scripted-upstream.ts'
import { ChaosConnection } from './chaos-connection.ts'
import { ChaosMarket, SYMBOLS } from './chaos-market.ts'

/** Time between two prices. */
const STEP_MS = 4
/** How long handshakes fail, or a connection is silent, before that ends. */
const TROUBLE_MS = 300
/** More than the server reads, whosever message it is. */
const HUGE = Buffer.alloc(4_500_000, ' ')
const GARBAGE = [
  '',
  'x',
  '[]',
  '{}',
  'null',
  '{"req_id":123456789}',
  '{"subscription":{"id":"nobody"},"tick":1}',
] as const

/** A market whose connections break, at random, in all the ways that connections break. */
export class ChaosUpstream extends ChaosMarket {
  readonly #upstream: ScriptedUpstream
  readonly #connections = new Set<ChaosConnection>()
  readonly #held: Duplex[] = []
  readonly #timer: NodeJS.Timeout
  #handshakes: 'open' | 'refuse' | 'hang' | 'slam' = 'open'

  constructor(upstream: ScriptedUpstream, random: () => number) {
    super(random)
    this.#upstream = upstream
    upstream.onUpgrade = (...upgrade) => this.#upgrade(...upgrade)
    upstream.onSocket = (socket) => this.#accept(socket)
    this.#timer = setInterval(() => this.#step(), STEP_MS)
  }

  /** Behaves from now on. Connections on which something will never be answered are lost. */
  calm(): void {
    this.isCalm = true
    for (const socket of this.#held) socket.destroy()
    for (const { socket, isOwing, isSilent } of this.#connections) if (isOwing || isSilent) socket.terminate()
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  /** How many streams it sends. */
  get size(): number {
    return [...this.#connections].reduce((sum, connection) => sum + connection.running().length, 0)
  }

  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const how = this.isCalm ? 'open' : this.#handshakes
    if (how === 'refuse') socket.end('HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n')
    else if (how === 'hang') this.#held.push(socket)
    else this.#upstream.accept(request, socket, head)
  }

  #accept(socket: WebSocket): void {
    const connection = new ChaosConnection(socket)
    this.#connections.add(connection)
    socket.on('message', (data: Buffer) => this.asked(connection, JSON.parse(data.toString()) as Message))
    socket.on('close', () => {
      this.#connections.delete(connection)
      for (const stream of connection.streams) this.end(stream)
    })
    if (!this.isCalm && this.#handshakes === 'slam') socket.close(1013)
  }

  #step(): void {
    const connections = [...this.#connections].filter(({ isOpen }) => isOpen)
    // Several prices arrive in one piece at times.
    for (const { wire } of connections) wire.cork()
    do {
      const symbol = this.pick(SYMBOLS as [string, ...string[]])
      this.price.set(symbol, (this.price.get(symbol) ?? 0) + 1)
      for (const connection of connections) {
        for (const stream of connection.running()) if (stream.symbol === symbol) this.send(connection, stream)
      }
    } while (this.chance(0.2))
    for (const { wire } of connections) wire.uncork()
    const [first, ...others] = connections
    if (this.chance(0.01)) this.#troubleHandshakes()
    if (first !== undefined && this.chance(0.1)) this.#misbehave(this.pick([first, ...others]))
  }

  #troubleHandshakes(): void {
    this.#handshakes = this.pick(['refuse', 'hang', 'slam'])
    setTimeout(() => {
      this.#handshakes = 'open'
      for (const socket of this.#held) socket.destroy()
    }, TROUBLE_MS)
  }

  #misbehave(connection: ChaosConnection): void {
    if (this.chance(0.08)) return this.#lose(connection)
    const [first, ...others] = connection.running()
    if (first !== undefined && this.chance(0.1)) {
      const stream = this.pick([first, ...others])
      const { id, request } = stream
      stream.isOver = true
      // A browser may have asked for the symbol in a list. Without a name it could not know which of the list has ended.
      const isNamed = 'ticks' in request || this.chance(0.5)
      const error = { code: 'Ended', message: '' }
      const message = { msg_type: 'error', error, ...(isNamed && { subscription: { id } }), echo_req: request }
      connection.send(JSON.stringify(message))
    } else if (this.chance(0.2)) connection.send('{"req_id":1,"any":1}', false, 2)
    else connection.send(this.pick(GARBAGE))
  }

  #lose(connection: ChaosConnection): void {
    const { socket, wire } = connection
    const ways = [
      () => socket.close(1001),
      () => socket.terminate(),
      () => wire.end(),
      () => connection.send(Buffer.from([0xff])),
      () => connection.send(HUGE),
      () => {
        connection.isSilent = true
        setTimeout(() => socket.terminate(), TROUBLE_MS)
      },
    ] as const
    this.pick(ways)()
  }
}
