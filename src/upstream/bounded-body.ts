import type { IncomingMessage } from 'node:http'
import { Transform, type Readable } from 'node:stream'
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

const NO_BODY: OutgoingBody = { stream: null, headers: [] }

/**
 * The body of a request, still streaming, bounded.
 * @throws Problem body_too_large where its length is told beforehand
 */
export function boundedBody(request: IncomingMessage, maxBytes: number): OutgoingBody {
  const length = request.headers['content-length']
  if (length === undefined) {
    if (request.headers['transfer-encoding'] === undefined) return NO_BODY
    const counted = request.pipe(counter(maxBytes))
    request.once('error', (error) => counted.destroy(error))
    request.once('close', () => {
      if (!request.complete) counted.destroy(new Error('the browser left'))
    })
    return { stream: counted, headers: [] }
  }
  if (Number(length) > maxBytes) throw new Problem('body_too_large')
  return length === '0' ? NO_BODY : { stream: request, headers: ['content-length', length] }
}

function counter(maxBytes: number): Transform {
  let bytes = 0
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length
      if (bytes > maxBytes) done(new BodyTooLarge())
      else done(null, chunk)
    },
  })
}
