import { parseRequest, type FeedRequest } from './parse-request.ts'

/** How many texts are remembered, and how long each may be. */
const MAX_REMEMBERED = 256
const MAX_REMEMBERED_BYTES = 512

/** Reads the requests of browsers. Pages of one build send the same texts, so each of the latest is parsed only once. */
export class RequestReader {
  readonly #known = new Map<string, FeedRequest>()

  /** Like {@link parseRequest}. */
  read(message: Buffer): FeedRequest | undefined {
    if (message.length > MAX_REMEMBERED_BYTES) return parseRequest(message)
    const text = message.toString('latin1')
    const known = this.#known.get(text)
    if (known !== undefined) return known
    const request = parseRequest(message)
    if (request === undefined) return undefined
    if (this.#known.size >= MAX_REMEMBERED) this.#known.clear()
    this.#known.set(text, request)
    return request
  }
}
