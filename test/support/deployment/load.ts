import type { Test } from 'tap'
import type { PublicSocket } from '../../../client/dist/client.js'
import type { JarBrowser, PageRequest } from '../browser/jar-browser.ts'
import { pageClient } from '../client/page-client.ts'
import { untilSlow as until } from '../time/until.ts'
import { PUBLIC_URL } from './deployed-balancer.ts'

/** The sockets of each user, each in a tab of its own: four of an account, and two public ones. */
export const SOCKETS = ['trading', 'trading', 'trading', 'trading', 'public', 'public'] as const
/** A client address in X-Forwarded-For that the balancer must not trust. */
export const FORGED = '203.0.113.9'

/** The outcome of a call: a status, or the error if there was no response. */
interface Result {
  readonly id: string
  readonly status: number | string
}

/** Makes one call after the other, each with its own id, until it is stopped. */
export class Caller {
  readonly results: Result[] = []
  /** Of the repetitions of orders, which have a key then. */
  readonly repeated: (Result & { readonly isReplay: boolean })[] = []
  readonly #browser: JarBrowser
  readonly #done: Promise<void>
  #isStopped = false

  /** @param hasKeys gives each order an Idempotency-Key, quoted or not, and repeats it */
  constructor(name: string, browser: JarBrowser, hasKeys = false) {
    this.#browser = browser
    this.#done = this.#run(name, hasKeys)
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#done
  }

  async #run(name: string, hasKeys: boolean): Promise<void> {
    for (let count = 0; !this.#isStopped; count++) {
      const id = `${name}-${count}`
      const headers = { 'x-csrf': '1', 'x-forwarded-for': FORGED }
      if (count % 2 === 0) {
        const { status } = await this.#call(`/api/trading/v1/options/accounts?${id}`, { headers })
        this.results.push({ id, status })
        continue
      }
      const key = count % 4 === 1 ? id : `"${id}"`
      const order = { method: 'POST', headers: { ...headers, ...(hasKeys && { 'idempotency-key': key }) }, body: id }
      const { status } = await this.#call('/api/payment-agents/v1/transfer', order)
      this.results.push({ id, status })
      if (hasKeys) this.repeated.push({ id, ...(await this.#call('/api/payment-agents/v1/transfer', order)) })
    }
  }

  async #call(path: string, init: PageRequest): Promise<Omit<(typeof this.repeated)[number], 'id'>> {
    try {
      const response = await this.#browser.fetch(path, init)
      await response.arrayBuffer()
      return { status: response.status, isReplay: response.headers.get('idempotency-replayed') === 'true' }
    } catch (error) {
      return { status: String(error), isReplay: false }
    }
  }
}

/** The sockets of a user's tabs, kept connected by the browser package. */
export class Lines {
  /** Close codes. */
  readonly closed: number[] = []
  /** The number of messages that each socket has received. */
  readonly received: number[] = SOCKETS.map(() => 0)
  readonly #sockets: readonly PublicSocket[]

  constructor(t: Test, browser: JarBrowser) {
    this.#sockets = SOCKETS.map((kind, index) => {
      const client = pageClient(t, browser, PUBLIC_URL, PUBLIC_URL, (code) => this.closed.push(code))
      const socket = kind === 'public' ? client.publicSocket() : client.tradingSocket('VRTC100')
      socket.listen(() => (this.received[index] = (this.received[index] ?? 0) + 1))
      return socket
    })
  }

  /** Close codes after which a socket does not reconnect. */
  get ended(): (number | undefined)[] {
    return this.#sockets.flatMap((socket) => (socket.status().state === 'ended' ? [socket.status().code] : []))
  }

  /** Resolves when every socket has received another message. */
  async untilAllReceive(): Promise<void> {
    const before = [...this.received]
    await until(() => this.received.every((count, index) => count > (before[index] ?? 0)))
  }

  stop(): void {
    for (const socket of this.#sockets) socket.close()
  }
}
