import { notStrictEqual } from 'node:assert/strict'
import type { Message, ServerTime, SocketError } from '../../../client/dist/client.js'
import type { SeriesSocket } from '../../../client/dist/client/series.js'

/** A request of a series, which waits for its answer. */
interface Asked {
  readonly message: Message
  readonly answer: (body: object) => void
  readonly refuse: (error: Error) => void
}

/** The socket of a series, whose messages a test writes, and the clock of its server. */
export class PriceFeed {
  /** In seconds since 1970, by the clock of the server. */
  time = 1_800_000_000
  /** Whether the client knows that clock, and how exactly. */
  knows = true
  errorMs = 500
  readonly asked: Asked[] = []
  /** How often the stream was subscribed to. */
  subscriptions = 0
  #id = 0
  #measuredAt = performance.now()
  #listener: (message: never) => void = () => undefined
  #onError: (error: SocketError) => void = () => undefined

  readonly socket: SeriesSocket = {
    request: (message: never) =>
      new Promise<object>((answer, refuse) => {
        this.asked.push({ message, answer, refuse })
      }),
    subscribe: (_message, listener, onError) => {
      this.subscriptions++
      this.#listener = listener
      this.#onError = onError
      return () => (this.#listener = () => undefined)
    },
    serverNow: (): ServerTime | undefined =>
      this.knows ? { now: this.time * 1000, errorMs: this.errorMs, measuredAt: this.#measuredAt } : undefined,
  }

  /** The stream begins, with this message. */
  begin(body: object): void {
    this.#id++
    this.push(body)
  }

  push(body: object): void {
    this.#listener({ req_id: this.#id, ...body } as never)
  }

  refuse(code: string): void {
    this.#onError({ code } as SocketError)
  }

  /** Prices at these seconds from now, each with a message of its own. */
  ticks(...seconds: readonly number[]): void {
    for (const second of seconds) this.push({ tick: { epoch: this.time + second, quote: 100 + second } })
  }

  /** Answers the oldest request for a history, or for the time, which the client then knows. */
  async answer(body: object): Promise<void> {
    const index = this.asked.findIndex(({ message }) => 'time' in message === 'time' in body)
    notStrictEqual(index, -1, 'nothing is asked')
    if ('time' in body) {
      this.knows = true
      this.errorMs = 500
      this.#measuredAt = performance.now()
    }
    this.asked.splice(index, 1)[0]?.answer(body)
    for (let turns = 0; turns < 8; turns++) await Promise.resolve()
  }

  /** How often the time is being asked for. */
  get asksTime(): number {
    return this.asked.filter(({ message }) => 'time' in message).length
  }
}
