import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { Problem } from '../problem.ts'

/** A request body that turned out larger than its limit while it was streamed. */
export class BodyTooLarge extends Error {
  constructor() {
    super('the request body is larger than its limit')
    this.name = 'BodyTooLarge'
  }
}

/** A body to send, and the framing headers that go with it. */
export interface OutgoingBody {
  readonly stream: Readable | null
  readonly headers: readonly string[]
}

/** A request without a body. */
export const NO_BODY: OutgoingBody = { stream: null, headers: [] }

/**
 * The body of a request, still streaming, bounded.
 * @throws Problem body_too_large where its length is told beforehand
 */
export function boundedBody(request: IncomingMessage, maxBytes: number): OutgoingBody {
  const length = request.headers['content-length']
  if (length === undefined) {
    if (request.headers['transfer-encoding'] === undefined) return NO_BODY
    return { stream: new BoundedBody(request, maxBytes), headers: [] }
  }
  const bytes = Number(length)
  if (bytes > maxBytes) throw new Problem('body_too_large')
  if (bytes === 0) return NO_BODY
  return { stream: new BoundedBody(request, maxBytes), headers: ['content-length', length] }
}

/**
 * What goes upstream is this, not the browser's request: undici destroys the body of a request that failed, and with it
 * would go the connection on which the browser waits for its answer.
 */
class BoundedBody extends Readable {
  readonly #source: IncomingMessage
  readonly #maxBytes: number
  #bytes = 0
  readonly #onData = (chunk: Buffer): void => this.#take(chunk)
  readonly #onEnd = (): void => this.#finish()
  readonly #onClose = (): void => void this.destroy(new Error('the browser left'))

  constructor(source: IncomingMessage, maxBytes: number) {
    super()
    this.#source = source
    this.#maxBytes = maxBytes
    // It may fail while no connection has taken it up yet: then nobody else listens, and the process would end.
    this.on('error', () => undefined)
    source.on('data', this.#onData).once('end', this.#onEnd).once('close', this.#onClose)
  }

  #take(chunk: Buffer): void {
    this.#bytes += chunk.length
    if (this.#bytes > this.#maxBytes) this.destroy(new BodyTooLarge())
    else if (!this.push(chunk)) this.#source.pause()
  }

  #finish(): void {
    this.#source.off('close', this.#onClose)
    this.push(null)
  }

  override _read(): void {
    this.#source.resume()
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#source.off('data', this.#onData).off('end', this.#onEnd).off('close', this.#onClose)
    // What is left of the body is read and dropped, so that the browser gets to read its answer.
    this.#source.resume()
    done(error)
  }
}
