import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

/**
 * Sends requests at a constant rate, whatever becomes of those before: a server that halts is sent no less meanwhile, and
 * each request waits as its user would. A process of its own: the bench sends it a {@link Pace}, hears that all connections
 * are open, says go, and gets {@link Latencies}.
 */

/** What to send, and how fast. */
export interface Pace {
  readonly port: number
  /** Whole request heads; request after request takes the next. */
  readonly requests: readonly string[]
  readonly perSecond: number
  readonly seconds: number
  readonly connections: number
}

/** Times from when a request was due to the last byte of its answer, in ms. */
export interface Latencies {
  readonly p50: number
  readonly p99: number
  readonly max: number
  readonly answers: number
  /** How late this process itself was with a request at most: what is below it is not the server's. */
  readonly ownP99: number
}

const TICK_MS = 1
const DRAIN_MS = 20_000

/** One connection; a request at a time. */
class Line {
  readonly #socket: Socket
  readonly #answered: (line: Line) => void
  #head = ''
  /** Bytes of the body still to come; undefined while the head is read. */
  #left: number | undefined
  dueAt = 0

  private constructor(socket: Socket, answered: (line: Line) => void) {
    this.#socket = socket
    this.#answered = answered
    socket.on('data', (chunk: Buffer) => this.#read(chunk))
    socket.on('close', () => fail('a connection was closed'))
    socket.on('error', (error) => fail(error.message))
  }

  static async open(port: number, answered: (line: Line) => void): Promise<Line> {
    const socket = connect(port, '127.0.0.1').setNoDelay()
    await once(socket, 'connect')
    return new Line(socket, answered)
  }

  send(request: string, dueAt: number): void {
    this.dueAt = dueAt
    this.#socket.write(request, 'latin1')
  }

  #read(chunk: Buffer): void {
    if (this.#left === undefined) {
      this.#head += chunk.toString('latin1')
      const end = this.#head.indexOf('\r\n\r\n')
      if (end === -1) return
      const length = /\r\ncontent-length: (\d+)/i.exec(this.#head)?.[1]
      if (!this.#head.startsWith('HTTP/1.1 200 ') || length === undefined) fail(this.#head.slice(0, 500))
      this.#left = Number(length) - (this.#head.length - end - 4)
      this.#head = ''
    } else {
      this.#left -= chunk.length
    }
    if (this.#left > 0) return
    this.#left = undefined
    this.#answered(this)
  }
}

process.once('message', (pace: Pace) => {
  void run(pace).then((latencies) => process.send?.(latencies, () => process.exit(0)))
})

async function run({ port, requests, perSecond, seconds, connections }: Pace): Promise<Latencies> {
  const total = Math.floor(perSecond * seconds)
  const times: number[] = []
  const lateness: number[] = []
  const idle: Line[] = []
  const waiting: number[] = []
  let next = 0
  const send = (line: Line, dueAt: number): void => line.send(requests[next++ % requests.length] ?? '', dueAt)
  const answered = (line: Line): void => {
    times.push(performance.now() - line.dueAt)
    const dueAt = waiting.shift()
    if (dueAt === undefined) idle.push(line)
    else send(line, dueAt)
  }
  for (let count = 0; count < connections; count++) idle.push(await Line.open(port, answered))
  process.send?.('open')
  await once(process, 'message')
  const startedAt = performance.now()
  let due = 0
  while (due < total) {
    const now = performance.now()
    for (; due < total && startedAt + (due / perSecond) * 1000 <= now; due++) {
      lateness.push(now - startedAt - (due / perSecond) * 1000)
      // From now on: what this process is late by itself is told apart.
      const line = idle.shift()
      if (line === undefined) waiting.push(now)
      else send(line, now)
    }
    await new Promise((resolve) => void setTimeout(resolve, TICK_MS))
  }
  const giveUpAt = performance.now() + DRAIN_MS
  while (times.length < total && performance.now() < giveUpAt) {
    await new Promise((resolve) => void setTimeout(resolve, TICK_MS))
  }
  if (times.length < total) fail(`${times.length} of ${total} requests were answered`)
  const sorted = times.toSorted((one, other) => one - other)
  return {
    p50: at(sorted, 0.5),
    p99: at(sorted, 0.99),
    max: at(sorted, 1),
    answers: times.length,
    ownP99: at(
      lateness.toSorted((one, other) => one - other),
      0.99,
    ),
  }
}

function at(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
}

function fail(why: string): never {
  throw new Error(why)
}
