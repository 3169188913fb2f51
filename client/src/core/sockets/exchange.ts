import { MAX_TIMEOUT_MS } from '../api/call.ts'
import { noteCall } from '../api/order.ts'
import { elapsedMs } from '../base/clock.ts'
import { SocketError } from '../base/errors.ts'
import { writeJson } from '../base/json.ts'
import { COMMANDS, READS } from '../generated/operations.ts'
import type { SentOrder } from '../base/order-shape.ts'
import type { ServerClock } from '../base/server-clock.ts'
import { PROBE_MS } from '../base/times.ts'
import type { Link } from './link.ts'
import type { OrderLog } from './order-log.ts'
import type { Message, SocketStatus } from './socket-status.ts'

/** Options of `request` and `command`. */
export interface RequestOptions {
  /** Stops waiting for the reply. It cannot take back a message that has been sent. */
  readonly signal?: AbortSignal | undefined
  /** Timeout until the reply arrives, in milliseconds; by default 15,000 for a request and 30,000 for a command. */
  readonly timeoutMs?: number | undefined
}

/** A message whose reply is awaited. */
interface Pending {
  readonly text: string
  readonly isCommand: boolean
  readonly resolve: (reply: Message) => void
  readonly reject: (error: unknown) => void
  isSent: boolean
  order?: SentOrder | undefined
}

/** A message as it will be sent, and its `req_id`. */
interface Prepared {
  readonly id: number
  readonly text: string
}

/** Sends messages and matches replies to them by `req_id`. */
export class Exchange {
  readonly #link: Link
  readonly #pending = new Map<number, Pending>()
  readonly #orders: OrderLog
  readonly #clock: ServerClock

  constructor(link: Link, orders: OrderLog, clock: ServerClock) {
    this.#link = link
    this.#orders = orders
    this.#clock = clock
  }

  /** Waits for a connection, then sends the message once. A message that may change something becomes a {@link command}. */
  async request(message: Message, options: RequestOptions = {}): Promise<Message> {
    if (isCommand(message)) return this.command(message, options)
    const askedAt = performance.now()
    const reply = await this.#exchange(this.#prepare(message), false, options)
    const { time } = reply
    if ('time' in message && typeof time === 'number') this.#clock.note(time, askedAt)
    return reply
  }

  /** Sends the message now and once, or rejects with `not_sent`. */
  async command(message: Message, options: RequestOptions = {}): Promise<Message> {
    const { signal } = options
    signal?.throwIfAborted()
    this.#mustBeOpen()
    noteCall(undefined, 'a command')
    // The page may change its object during the ping.
    const prepared = this.#prepare(message)
    if (!this.#link.isFresh) {
      const askedAt = Date.now()
      const probe = this.#exchange(this.#prepare({ ping: 1 }), false, { ...options, timeoutMs: PROBE_MS })
      await probe.catch((error: unknown) => {
        signal?.throwIfAborted()
        // Even a refused ping shows that the connection works.
        if (!(error instanceof SocketError && error.reply)) throw notSent('the connection is silent')
      })
      signal?.throwIfAborted()
      this.#mustBeOpen()
      // A page that was busy, or a machine that slept, may read the reply long after it arrived, and before the timeout.
      if (elapsedMs(askedAt) > PROBE_MS) throw notSent('the page was busy')
    }
    return this.#exchange(prepared, true, options)
  }

  /** Sends the requests that have waited for a working connection. */
  up(): void {
    for (const pending of this.#pending.values()) if (!pending.isSent && !pending.isCommand) this.#send(pending)
  }

  /** Rejects what was sent on a lost connection, unless that was refused; after the last connection, rejects everything. */
  down({ state, code = 1006, reason = '' }: SocketStatus): void {
    const hasEnded = state === 'ended'
    for (const pending of this.#pending.values()) {
      // The server refuses a connection by closing it as soon as it is open, so the request was lost, and waits again.
      if (!pending.isCommand && !this.#link.isProven) pending.isSent = false
      if (!pending.isSent && !hasEnded) continue
      const more = { closeCode: code, ...outcomeOf(pending) }
      pending.reject(
        new SocketError(hasEnded ? 'ended' : 'connection_lost', `the connection closed: ${code} ${reason}`, more),
      )
    }
  }

  /** Settles the message that this one replies to. @returns false if it replies to none */
  take(message: Message): boolean {
    const pending = this.#pending.get(Number(message['req_id']))
    if (!pending) return false
    const error = errorOf(message)
    if (error) pending.reject(error)
    else pending.resolve(message)
    return true
  }

  #mustBeOpen(): void {
    const { state } = this.#link.status
    if (state !== 'open' || !this.#link.isUp) throw notSent(`the connection is ${state}`)
  }

  /** @throws TypeError if the message is no JSON */
  #prepare(message: Message): Prepared {
    const id = this.#orders.nextId()
    return { id, text: writeJson({ ...message, req_id: id }) }
  }

  #exchange({ id, text }: Prepared, isCommand: boolean, options: RequestOptions): Promise<Message> {
    const { signal, timeoutMs = isCommand ? 30_000 : 15_000 } = options
    let timer: ReturnType<typeof setTimeout> | undefined
    let onAbort: (() => void) | undefined
    const replied = new Promise<Message>((resolve, reject) => {
      const pending: Pending = { text, isCommand, resolve, reject, isSent: false }
      signal?.throwIfAborted()
      const { state, code } = this.#link.status
      if (state === 'ended') throw new SocketError('ended', 'the connection has ended', { closeCode: code })
      const onTimeout = (): void => reject(new SocketError('timeout', 'no reply in time', outcomeOf(pending)))
      timer = setTimeout(onTimeout, Math.min(timeoutMs, MAX_TIMEOUT_MS))
      onAbort = () => {
        const cause: unknown = signal?.reason
        const code = cause instanceof SocketError ? cause.code : 'aborted'
        reject(isCommand ? new SocketError(code, 'aborted', { cause, ...outcomeOf(pending) }) : cause)
      }
      signal?.addEventListener('abort', onAbort)
      this.#pending.set(id, pending)
      // A stale connection may be dead, so a request waits until the connection has shown that it works.
      if (this.#link.isUp && this.#link.status.state !== 'stale') this.#send(pending)
    })
    return replied.finally(() => {
      clearTimeout(timer)
      if (onAbort) signal?.removeEventListener('abort', onAbort)
      this.#pending.delete(id)
    })
  }

  #send(pending: Pending): void {
    pending.isSent = true
    if (pending.isCommand) pending.order = this.#orders.sent(pending.text)
    this.#link.send(pending.text)
  }
}

/** False if the message certainly changes nothing. */
export function isCommand(message: Message): boolean {
  const keys = Object.keys(message)
  return keys.some((key) => COMMANDS.test(key)) || !keys.some((key) => READS.test(key))
}

/** What the error of a message says that is not answered: that a command which was sent may have been executed. */
function outcomeOf({ isCommand, isSent, order }: Pending): { outcome?: 'unknown'; order?: SentOrder | undefined } {
  return isCommand && isSent ? { outcome: 'unknown', order } : {}
}

/** The error of the trading service that a message carries, if any. */
export function errorOf(message: Message): SocketError | undefined {
  const error = message['error'] as { code?: string; message?: string } | undefined
  if (!error) return undefined
  return new SocketError(String(error.code), error.message ?? '', { reply: message })
}

function notSent(why: string): SocketError {
  return new SocketError('not_sent', `not sent: ${why}`)
}
