import { SocketError } from './errors.ts'
import type { Link } from './link.ts'
import { isCommand } from './operations.ts'
import type { Message, SocketStatus } from './socket-status.ts'

/** How long a caller waits. */
export interface RequestOptions {
  readonly signal?: AbortSignal
  /** Longest wait for the response; 15,000 unless given, for a command 30,000. */
  readonly timeoutMs?: number
}

/** One message that awaits its response. */
interface Entry {
  readonly message: Message
  readonly isCommand: boolean
  readonly resolve: (answer: Message) => void
  readonly reject: (error: unknown) => void
  isSent: boolean
}

const REQUEST_MS = 15_000
const COMMAND_MS = 30_000
/** How long a silent connection has to show that it works before a command is sent on it. */
const PROBE_MS = 1000

/** Messages and their responses, matched by `req_id`. */
export class Exchange {
  readonly #link: Link
  readonly #entries = new Map<number, Entry>()
  readonly #nextId: () => number

  constructor(link: Link, nextId: () => number) {
    this.#link = link
    this.#nextId = nextId
  }

  /** Waits for a connection, then sends once. A message that may change something is a {@link command} instead. */
  async request(message: Message, options: RequestOptions = {}): Promise<Message> {
    if (isCommand(message)) return this.command(message, options)
    return this.#ask(message, false, { timeoutMs: REQUEST_MS, ...options })
  }

  /** Sends once and now, or rejects with `not_sent`. */
  async command(message: Message, options: RequestOptions = {}): Promise<Message> {
    const { signal } = options
    signal?.throwIfAborted()
    this.#mustBeOpen()
    if (!this.#link.isFresh) {
      const probe = this.#ask({ ping: 1 }, false, { ...options, timeoutMs: PROBE_MS })
      await probe.catch((error: unknown) => {
        signal?.throwIfAborted()
        // The trading service refused the ping, but it answered.
        if (!(error instanceof SocketError && error.answer)) throw notSent('the connection does not answer')
      })
      signal?.throwIfAborted()
      this.#mustBeOpen()
    }
    return this.#ask(message, true, { timeoutMs: COMMAND_MS, ...options })
  }

  /** A connection may be used: sends what waited for it. */
  up(): void {
    for (const [id, entry] of this.#entries) if (!entry.isSent && !entry.isCommand) this.#send(id, entry)
  }

  /** The connection has gone, or there will be none any more. */
  down({ state, code = 1006, reason = '' }: SocketStatus): void {
    const hasEnded = state === 'ended'
    for (const { isSent, isCommand, reject } of this.#entries.values()) {
      if (!isSent && !hasEnded) continue
      const more = { closeCode: code, ...(isCommand && { outcome: 'unknown' as const }) }
      reject(
        new SocketError(
          hasEnded ? 'ended' : 'connection_lost',
          `the connection has gone: ${code} ${reason}`,
          more,
        ),
      )
    }
  }

  /** @returns false when nobody waits for this message */
  take(message: Message): boolean {
    const entry = this.#entries.get(Number(message['req_id']))
    if (!entry) return false
    const error = errorOf(message)
    if (error) entry.reject(error)
    else entry.resolve(message)
    return true
  }

  #mustBeOpen(): void {
    const { state } = this.#link.status
    if (state !== 'open' || !this.#link.isUp) throw notSent(`the connection is ${state}`)
  }

  #ask(message: Message, isCommand: boolean, { signal, timeoutMs }: RequestOptions): Promise<Message> {
    const id = this.#nextId()
    let timer: ReturnType<typeof setTimeout> | undefined
    let onAbort: (() => void) | undefined
    const answered = new Promise<Message>((resolve, reject) => {
      const entry: Entry = { message, isCommand, resolve, reject, isSent: false }
      const outcome = (): { outcome?: 'unknown' } => (isCommand && entry.isSent ? { outcome: 'unknown' } : {})
      signal?.throwIfAborted()
      const { state, code } = this.#link.status
      if (state === 'ended') throw new SocketError('ended', 'the connection has ended', { closeCode: code })
      timer = setTimeout(
        () => reject(new SocketError('timeout', 'no response in time', outcome())),
        timeoutMs,
      )
      onAbort = () => {
        const cause: unknown = signal?.reason
        reject(
          isCommand
            ? new SocketError('aborted', 'aborted after it was sent', { cause, ...outcome() })
            : cause,
        )
      }
      signal?.addEventListener('abort', onAbort)
      this.#entries.set(id, entry)
      // While it is stale nobody knows whether it would arrive.
      if (this.#link.isUp && this.#link.status.state !== 'stale') this.#send(id, entry)
    })
    return answered.finally(() => {
      clearTimeout(timer)
      if (onAbort) signal?.removeEventListener('abort', onAbort)
      this.#entries.delete(id)
    })
  }

  #send(id: number, entry: Entry): void {
    entry.isSent = true
    this.#link.send({ ...entry.message, req_id: id })
  }
}

/** The error that a message of the trading service carries, if it does. */
export function errorOf(message: Message): SocketError | undefined {
  const error = message['error'] as { code?: string; message?: string } | undefined
  if (!error) return undefined
  return new SocketError(String(error.code), error.message ?? '', { answer: message })
}

function notSent(why: string): SocketError {
  return new SocketError('not_sent', `not sent: ${why}`)
}
