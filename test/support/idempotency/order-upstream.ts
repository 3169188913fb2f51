import type { IncomingMessage, ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import type { Test } from 'tap'
import { httpServer } from '../server/http-server.ts'

/** What upstream does with the calls of a key. */
export const BEHAVIOURS = [
  'answers',
  'isSlow',
  'fails',
  'breaksBefore',
  'breaksAfter',
  'breaksOff',
  'isBusyFirst',
] as const
/** One of {@link BEHAVIOURS}. */
type Behaviour = (typeof BEHAVIOURS)[number]

const SLOW_MS = 400

/** An upstream that takes orders, remembers which keys it has seen, and misbehaves as each key asks for. */
export class OrderUpstream {
  url = ''
  /** When each key arrived (ms since the start of this process). A call that is refused with 429 does not count. */
  readonly seen = new Map<string, number[]>()
  readonly #busy = new Set<string>()

  /** Starts one on a free port that ends with the test. */
  static async start(t: Test): Promise<OrderUpstream> {
    const upstream = new OrderUpstream()
    upstream.url = await httpServer(t, (request, response) => void upstream.#take(request, response))
    return upstream
  }

  /** The first word of a key says what happens to its calls. */
  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const key = String(request.headers['idempotency-key'])
    const behaviour = key.split(' ', 1)[0] as Behaviour
    if (behaviour === 'isBusyFirst' && !this.#busy.has(key)) {
      this.#busy.add(key)
      return void response.writeHead(429, { 'retry-after': '1' }).end()
    }
    const times = this.seen.get(key) ?? []
    this.seen.set(key, [...times, performance.now()])
    if (behaviour === 'breaksBefore') return void request.socket.destroy()
    const body = await text(request).catch(() => '')
    if (behaviour === 'isSlow') await new Promise((resolve) => void setTimeout(resolve, SLOW_MS))
    const answer = JSON.stringify({ key, body, nth: times.length + 1 })
    if (behaviour === 'breaksAfter') return void request.socket.destroy()
    if (behaviour === 'fails') return void response.writeHead(500).end(answer)
    response.writeHead(201, { 'content-type': 'application/json', 'content-length': answer.length })
    if (behaviour !== 'breaksOff') return void response.end(answer)
    response.write(answer.slice(0, 5), () => request.socket.destroy())
  }
}
