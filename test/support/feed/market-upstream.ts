import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { within } from '../time/until.ts'

const PROGRAM = fileURLToPath(new URL('market_upstream', import.meta.url))
/** Debian's Python, which python3-websockets is installed for. */
const PYTHON = '/usr/bin/python3'

/** An order to the service; each is explained in `market_upstream/__main__.py`. */
type Order =
  | { readonly do: 'flow' | 'handshakes'; readonly on: boolean }
  | { readonly do: 'settle' }
  | { readonly do: 'jitter'; readonly ms: number }
  | { readonly do: 'refuse'; readonly every: number }
  | { readonly do: 'omit'; readonly count: number }
  | { readonly do: 'end'; readonly symbol: string }
  | { readonly do: 'say'; readonly text: string }
  | { readonly do: 'lose'; readonly how: 'close' | 'reset' | 'silent' }

/** What the service counts. */
interface State {
  /** For each open connection the subjects of its streams, e.g. `['candles', 'R_10', 60]`. */
  readonly connections: readonly (readonly (readonly (string | number)[])[])[]
  /** Messages that have arrived since the log was last read. */
  readonly received: number
  /** Connections since the start. */
  readonly opened: number
}

/** A market data service that is written in Python, shares no code with the sandbox, and moves prices when told to. */
export class MarketUpstream {
  readonly wsUrl: string
  readonly #send: (order: object) => Promise<unknown>

  private constructor(port: number, send: (order: object) => Promise<unknown>) {
    this.wsUrl = `ws://127.0.0.1:${port}`
    this.#send = send
  }

  /** Starts one that ends with the test. @param seed of the layout of its JSON; prices do not depend on it */
  static async start(t: Test, seed: number): Promise<MarketUpstream> {
    const child = spawn(PYTHON, ['-B', PROGRAM, String(seed)], { stdio: ['pipe', 'pipe', 'pipe'] })
    t.teardown(() => child.kill('SIGKILL'))
    let errors = ''
    child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()))
    // Writing to a service that has ended fails; the missing answer tells why.
    child.stdin.on('error', () => undefined)
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
    const failed = once(child, 'error').then(([error]: unknown[]): never => {
      throw new Error(`${PYTHON} with python3-websockets is needed: ${String(error)}`)
    })
    failed.catch(() => undefined)
    const line = async (): Promise<string> => {
      const next = await within(Promise.race([lines.next(), failed]), 'the market upstream answers')
      if (next.done !== true) return next.value
      throw new Error(`apt-get install python3-websockets? The market upstream ended: ${errors.slice(-1000)}`)
    }
    const port = Number(await line())
    // One at a time, so that each answer belongs to its order.
    let last: Promise<unknown> = Promise.resolve()
    return new MarketUpstream(port, (order) => {
      const answer = last.then(async () => {
        child.stdin.write(`${JSON.stringify(order)}\n`)
        return JSON.parse(await line()) as unknown
      })
      last = answer.catch(() => undefined)
      return answer
    })
  }

  /** Resolves once the order has been executed; what it makes the service send may still be on its way. */
  async order(order: Order): Promise<void> {
    await this.#send(order)
  }

  /** Moves the prices of symbols. @returns how many prices each symbol has had */
  emit(symbols: readonly string[], times = 1): Promise<Readonly<Record<string, number>>> {
    return this.#send({ do: 'emit', symbols, times }) as Promise<Readonly<Record<string, number>>>
  }

  state(): Promise<State> {
    return this.#send({ do: 'state' }) as Promise<State>
  }

  /** The messages that have arrived since this was last called, with the number of their connection; null for a binary one. */
  log(): Promise<readonly (readonly [connection: number, text: string | null])[]> {
    return this.#send({ do: 'log' }) as Promise<readonly (readonly [number, string | null])[]>
  }
}
