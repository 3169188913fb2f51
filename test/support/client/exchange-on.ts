import type { Test } from 'tap'
import { Exchange } from '../../../client/src/core/sockets/exchange.ts'
import type { Link } from '../../../client/src/core/sockets/link.ts'
import { OrderLog } from '../../../client/src/core/sockets/order-log.ts'
import type { Message, SocketStatus } from '../../../client/src/core/sockets/socket-status.ts'
import { ManualTimers } from '../time/manual-timers.ts'

declare global {
  // What the package uses of a page, and Node.js lacks.
  var addEventListener:
    | ((name: string, listener: (event: Event) => void, options: { readonly signal: AbortSignal }) => void)
    | undefined
  var location: { readonly href: string; readonly origin: string } | undefined
  interface Navigator {
    readonly onLine: boolean
  }
}

/** A link that a test moves. */
export class FakeLink {
  isUp = true
  isFresh = true
  isProven = true
  isClosed = false
  status: SocketStatus = { state: 'open' }
  /** The messages that were sent on it. */
  readonly sent: Message[] = []

  send(text: string): void {
    this.sent.push(JSON.parse(text) as Message)
  }

  close(): void {
    this.isClosed = true
  }

  /** As those take it that only use a link. */
  get real(): Link {
    return this as unknown as Link
  }
}

/** An exchange on a link that is open, and the times of the server that it has noted, with when it had asked for them. */
export function exchangeOn(t: Test) {
  const timers = new ManualTimers(t)
  const link = new FakeLink()
  const noted: (readonly unknown[])[] = []
  const orders = new OrderLog(() => {
    throw new Error('nobody looks for an order')
  })
  const clock = { note: (...time: readonly unknown[]) => void noted.push(time), get: () => undefined }
  return { exchange: new Exchange(link.real, orders, clock), link, noted, timers }
}
