import { EventEmitter } from 'node:events'
import type { FastifyReply } from 'fastify'
import { ownHeaders } from '../../http/base-headers.ts'
import { breakOff } from '../../http/http-socket.ts'
import type { ResponseSink } from '../../upstream/forwarding.ts'
import { passedOn, responseHeaders, type UpstreamHeaders } from '../../upstream/headers.ts'
import { JoinedPieces } from '../../upstream/request-body.ts'
import type { KeptAnswer } from './record.ts'

/** Statuses whose responses have no body and need no length (RFC 9110 §6.4.1). */
const BODILESS: ReadonlySet<number> = new Set([204, 304])

interface SinkOptions {
  /** A larger response is not kept. */
  readonly maxBytes: number
  readonly hasBudget: boolean
  /** Called when the response turns out to be larger than `maxBytes`. */
  readonly onLarge: (status: number) => void
}

/**
 * Takes upstream's response to its end, whether or not the browser is still there. A response that is too large to be kept
 * is streamed to the browser from that point on.
 */
export class AnswerSink extends EventEmitter<{ close: []; drain: [] }> implements ResponseSink {
  readonly #reply: FastifyReply
  readonly #options: SinkOptions
  #body = new JoinedPieces()
  #status = 0
  #headers: UpstreamHeaders = {}
  #isStreaming = false

  constructor(reply: FastifyReply, options: SinkOptions) {
    super()
    this.#reply = reply
    this.#options = options
  }

  /** Whether the browser has left. It matters only before the call is sent. */
  get destroyed(): boolean {
    return this.#reply.raw.destroyed
  }

  /** Whether the response is too large, and streamed. */
  get isStreaming(): boolean {
    return this.#isStreaming
  }

  /** The response, once it is complete, unless it is streamed. */
  get answer(): KeptAnswer {
    const body = this.#body.joined()
    const needsLength = this.#headers['content-length'] === undefined && !BODILESS.has(this.#status)
    const headers = needsLength ? { ...this.#headers, 'content-length': String(body.length) } : this.#headers
    return { status: this.#status, headers, body }
  }

  begin(status: number, headers: UpstreamHeaders): void {
    this.#status = status
    this.#headers = passedOn(headers, this.#options.hasBudget)
    // The length of a 304 is that of a response that is not sent.
    if (!BODILESS.has(status) && Number(headers['content-length'] ?? 0) > this.#options.maxBytes) this.#stream()
  }

  write(chunk: Buffer): boolean {
    if (this.#isStreaming) return this.#reply.raw.write(chunk)
    this.#body.add(chunk)
    return this.#body.length <= this.#options.maxBytes || this.#stream()
  }

  end(last?: Buffer | string, encoding?: 'latin1'): void {
    const chunk = typeof last === 'string' ? Buffer.from(last, encoding) : last
    if (chunk !== undefined) this.write(chunk)
    if (this.#isStreaming) this.#reply.raw.end()
  }

  breakOff(): void {
    if (this.#isStreaming) breakOff(this.#reply.raw)
  }

  /** Returns false if upstream must wait for the browser. */
  #stream(): boolean {
    const { raw } = this.#reply
    this.#isStreaming = true
    this.#options.onLarge(this.#status)
    raw.on('drain', () => this.emit('drain')).on('close', () => this.emit('close'))
    if (raw.destroyed) {
      this.#reply.hijack()
      this.emit('close')
      return true
    }
    raw.writeHead(
      this.#status,
      responseHeaders(this.#status, ownHeaders(this.#reply), this.#headers, this.#options.hasBudget),
    )
    this.#reply.hijack()
    const received = this.#body.joined()
    this.#body = new JoinedPieces()
    return received.length === 0 || raw.write(received)
  }
}
