import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { Problem } from '../problem.ts'
import { judgeAfter } from '../time/judge-after.ts'

/** A body up to this size is sent once it is complete, so that an unfinished one blocks no connection to upstream. */
const WHOLE_BYTES = 65_536
/** A longer body is refused if a window brings fewer bytes than this, which even a slow phone manages. */
const MIN_BYTES_PER_WINDOW = 16_384
const WINDOW_MS = 5000

/** Destroys a streamed body that is too large or too slow, or may not go on. `problem` is for the browser. */
export class BodyRefused extends Error {
  readonly problem: Error

  constructor(problem: Error) {
    super(problem.message)
    this.name = 'BodyRefused'
    this.problem = problem
  }
}

/** A body to send, and the framing headers that go with it. */
export type OutgoingBody =
  | { readonly is: 'whole'; readonly content: Buffer | null; readonly headers: readonly string[] }
  | { readonly is: 'streamed'; readonly content: StreamedBody; readonly headers: readonly string[] }

/** A request without a body. */
export const NO_BODY: OutgoingBody = { is: 'whole', content: null, headers: [] }

/**
 * Receives a small body whole. A longer one is returned as a stream, once {@link WHOLE_BYTES} of it have arrived.
 * Undefined when the browser left before that.
 * @throws Problem body_too_large
 */
export async function receiveBody(request: IncomingMessage, maxBytes: number): Promise<OutgoingBody | undefined> {
  const { 'content-length': length, 'transfer-encoding': coding } = request.headers
  if (length === undefined ? coding === undefined : Number(length) === 0) return NO_BODY
  if (Number(length) > maxBytes) throw new Problem('body_too_large')
  const start = await receiveStart(request, Math.min(WHOLE_BYTES, maxBytes))
  if (start === undefined) return undefined
  const { content, next } = start
  if (next === undefined) {
    return content.length === 0
      ? NO_BODY
      : { is: 'whole', content, headers: ['content-length', String(content.length)] }
  }
  if (content.length + next.length > maxBytes) {
    // Reads and drops the rest. Without this, the browser might never get to read the response.
    request.resume()
    throw new Problem('body_too_large')
  }
  const headers = length === undefined ? [] : ['content-length', length]
  return { is: 'streamed', content: new StreamedBody(request, [content, next], maxBytes), headers }
}

/** Releases a body that will not be sent; the unread rest of a stream is read and dropped. */
export function discard(body: Readable | Buffer | null): void {
  if (body instanceof Readable) body.destroy()
}

/** The first bytes of a body, and the piece after them; undefined if they are all. */
interface Start {
  readonly content: Buffer
  readonly next: Buffer | undefined
}

/** Receives until there are more than `bytes` or the body is complete. Undefined when the browser left. */
function receiveStart(request: IncomingMessage, bytes: number): Promise<Start | undefined> {
  if (request.destroyed) return Promise.resolve(undefined)
  return new Promise((resolve) => {
    const pieces = new JoinedPieces()
    const settle = (start: Start | undefined): void => {
      request.off('data', onData).off('end', onEnd).off('close', onClose)
      resolve(start)
    }
    const onData = (chunk: Buffer): void => {
      if (pieces.length + chunk.length <= bytes) return pieces.add(chunk)
      request.pause()
      settle({ content: pieces.joined(), next: chunk })
    }
    const onEnd = (): void => settle({ content: pieces.joined(), next: undefined })
    const onClose = (): void => settle(undefined)
    request.on('data', onData).once('end', onEnd).once('close', onClose)
  })
}

/**
 * Stands between the browser's request and undici, which destroys the body of a request that fails. If that were the
 * browser's request itself, the connection on which the browser waits for its response would be destroyed with it.
 */
class StreamedBody extends Readable {
  /** Asked before anything more goes on. Rejects with the error because of which upstream must not get the end. */
  mayGoOn: (() => Promise<void>) | undefined
  readonly #source: IncomingMessage
  readonly #maxBytes: number
  #bytes: number
  /** Received in this window; undefined, so that the window does not count, if upstream was slower than the browser. */
  #windowBytes: number | undefined = 0
  /** Ends the window. There is none before upstream reads: the call may wait for a connection. */
  #endWait: (() => void) | undefined
  readonly #onData = (chunk: Buffer): void => {
    this.#bytes += chunk.length
    if (this.#windowBytes !== undefined) this.#windowBytes += chunk.length
    if (this.#bytes > this.#maxBytes) this.destroy(new BodyRefused(new Problem('body_too_large')))
    else this.#inTurn(chunk)
  }
  readonly #onEnd = (): void => {
    this.#source.off('close', this.#onClose)
    this.#endWait?.()
    this.#inTurn(null)
  }
  readonly #onClose = (): void => void this.destroy(new Error('the browser left'))
  /** The pieces that have not been asked about yet, one after the other. */
  #turn = Promise.resolve()

  constructor(source: IncomingMessage, start: readonly Buffer[], maxBytes: number) {
    super()
    this.#source = source
    this.#maxBytes = maxBytes
    this.#bytes = start.reduce((sum, { length }) => sum + length, 0)
    // Without a listener, an error before undici starts to read the body would end the process.
    this.on('error', () => undefined)
    source.on('data', this.#onData).once('end', this.#onEnd).once('close', this.#onClose)
    for (const piece of start) this.push(piece)
    // Its last piece may have come with those before it, and the end with that.
    if (source.readableEnded) this.#onEnd()
  }

  #inTurn(piece: Buffer | null): void {
    if (this.mayGoOn === undefined) return this.#goOn(piece)
    this.#source.pause()
    // Where upstream knows the length, it has the whole before its end is noticed here.
    const isSent = piece === null && this.#source.headers['content-length'] !== undefined
    this.#turn = this.#turn.then(isSent ? undefined : this.mayGoOn).then(
      () => {
        this.#source.resume()
        this.#goOn(piece)
      },
      (error: Error) => void this.destroy(new BodyRefused(error)),
    )
  }

  #goOn(piece: Buffer | null): void {
    if (this.destroyed || this.push(piece) || piece === null) return
    this.#windowBytes = undefined
    this.#source.pause()
  }

  #beginWindow(): void {
    this.#endWait = judgeAfter(WINDOW_MS, () => {
      const isPaused = this.#source.isPaused()
      const bytes = isPaused ? undefined : this.#windowBytes
      this.#windowBytes = isPaused ? undefined : 0
      if (bytes !== undefined && bytes < MIN_BYTES_PER_WINDOW) return void this.destroy(new BodyRefused(tooSlow()))
      this.#beginWindow()
    })
  }

  override _read(): void {
    if (this.#endWait === undefined) this.#beginWindow()
    this.#source.resume()
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#endWait?.()
    this.#source.off('data', this.#onData).off('end', this.#onEnd).off('close', this.#onClose)
    // Reads and drops the rest, as in receiveBody().
    this.#source.resume()
    done(error)
  }
}

function tooSlow(): Problem {
  const detail = 'The body came too slowly.'
  return new Problem('bad_request', { status: 408, detail, headers: { connection: 'close' } })
}

/**
 * A body that arrives in pieces. They are copied into one buffer: a browser chooses how small they are, and each takes
 * hundreds of bytes for as long as it is kept.
 */
export class JoinedPieces {
  #buffer: Buffer = Buffer.alloc(0)
  #length = 0

  /** How many bytes have arrived. */
  get length(): number {
    return this.#length
  }

  add(piece: Buffer): void {
    const length = this.#length + piece.length
    // Most bodies come in one piece, which is not copied.
    if (this.#length === 0) this.#buffer = piece
    else {
      if (length > this.#buffer.length) this.#grow(length)
      piece.copy(this.#buffer, this.#length)
    }
    this.#length = length
  }

  /** All bytes that have arrived. */
  joined(): Buffer {
    return this.#buffer.subarray(0, this.#length)
  }

  #grow(length: number): void {
    const larger = Buffer.allocUnsafeSlow(Math.max(length, 2 * this.#buffer.length))
    this.#buffer.copy(larger, 0, 0, this.#length)
    this.#buffer = larger
  }
}
