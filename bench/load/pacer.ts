import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { quantile } from '../rounds.ts'
import { clock, holds } from './waiting.ts'

/**
 * A process that sends requests at a constant rate without waiting for earlier responses, so that a stalled server gets as
 * many requests as any other and the wait of every user is counted. The bench sends it a {@link Pace}. The process replies
 * when all connections are open, starts at the next message, and replies with {@link Latencies}.
 */

/** The requests and their rate. */
export interface Pace {
  readonly port: number
  /** Requests with all headers and no body, which are sent in turn. */
  readonly requests: readonly string[]
  readonly perSecond: number
  readonly seconds: number
  readonly connections: number
}

/** When a request could first be sent, and how long the last byte of its response took from then on, in ms. */
export type Timed = readonly [sentAt: number, ms: number]

/** The latencies of all requests. */
export interface Latencies {
  readonly times: readonly Timed[]
  readonly responses: number
  /** The p99 of the delay, in ms, with which this process itself handled requests that were due. */
  readonly ownP99: number
}

const TICK_MS = 1
const DRAIN_MS = 20_000

/** A connection for one request at a time. */
class Connection {
  readonly #socket: Socket
  readonly #onResponse: (connection: Connection) => void
  #headers = ''
  /** Remaining bytes of the body; undefined while the headers are read. */
  #remaining: number | undefined
  dueAt = 0

  private constructor(socket: Socket, onResponse: (connection: Connection) => void) {
    this.#socket = socket
    this.#onResponse = onResponse
    socket.on('data', (chunk: Buffer) => this.#read(chunk))
    socket.on('close', () => fail('a connection was closed'))
    socket.on('error', (error) => fail(error.message))
  }

  static async open(port: number, onResponse: (connection: Connection) => void): Promise<Connection> {
    const socket = connect(port, '127.0.0.1').setNoDelay()
    await once(socket, 'connect')
    return new Connection(socket, onResponse)
  }

  send(request: string, dueAt: number): void {
    this.dueAt = dueAt
    this.#socket.write(request, 'latin1')
  }

  #read(chunk: Buffer): void {
    if (this.#remaining === undefined) {
      this.#headers += chunk.toString('latin1')
      const end = this.#headers.indexOf('\r\n\r\n')
      if (end === -1) return
      const length = /\r\ncontent-length: (\d+)/i.exec(this.#headers)?.[1]
      if (!this.#headers.startsWith('HTTP/1.1 200 ') || length === undefined) fail(this.#headers.slice(0, 500))
      this.#remaining = Number(length) - (this.#headers.length - end - 4)
      this.#headers = ''
    } else {
      this.#remaining -= chunk.length
    }
    if (this.#remaining > 0) return
    this.#remaining = undefined
    this.#onResponse(this)
  }
}

process.once('message', (pace: Pace) => {
  void run(pace).then((latencies) => process.send?.(latencies, () => process.exit(0)))
})

async function run({ port, requests, perSecond, seconds, connections }: Pace): Promise<Latencies> {
  const total = Math.floor(perSecond * seconds)
  const times: Timed[] = []
  const lateness: number[] = []
  const idle: Connection[] = []
  const waiting: number[] = []
  let next = 0
  const send = (connection: Connection, dueAt: number): void =>
    connection.send(requests[next++ % requests.length] ?? '', dueAt)
  const onResponse = (connection: Connection): void => {
    times.push([connection.dueAt, clock() - connection.dueAt])
    const dueAt = waiting.shift()
    if (dueAt === undefined) idle.push(connection)
    else send(connection, dueAt)
  }
  for (let count = 0; count < connections; count++) idle.push(await Connection.open(port, onResponse))
  process.send?.('open')
  await once(process, 'message')
  const startedAt = clock()
  let due = 0
  while (due < total) {
    const now = clock()
    for (; due < total && startedAt + (due / perSecond) * 1000 <= now; due++) {
      lateness.push(now - startedAt - (due / perSecond) * 1000)
      // The latency starts now, as the delay of this process itself is reported separately.
      const connection = idle.shift()
      if (connection === undefined) waiting.push(now)
      else send(connection, now)
    }
    await pause(TICK_MS)
  }
  const isComplete = await holds(() => times.length === total, DRAIN_MS, TICK_MS)
  if (!isComplete) fail(`${times.length} of ${total} requests got a response`)
  return {
    times,
    responses: times.length,
    ownP99: quantile(lateness, 0.99),
  }
}

function fail(why: string): never {
  throw new Error(why)
}
