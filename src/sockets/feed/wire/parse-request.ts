import { parsedObject } from '../../../http/parsed-object.ts'
import { OPERATIONS } from '../../operations.ts'
import { echoing } from '../../upstream-error.ts'
import { standaloneBuffer } from './frame-of.ts'
import { canonicalText, hasPlainNumbers, isUnambiguous, memberTexts, objectText } from '../../json-text.ts'

/** Real requests have a few hundred bytes. Every message of a stream repeats its request, so long ones could cause a flood. */
const MAX_REQUEST_BYTES = 4096

/** Memory of a request: a fixed part in bytes, and its text in this many forms. */
const BYTES_PER_REQUEST = 4096
const TEXTS_PER_REQUEST = 4

/** How many texts are remembered, and how long each may be. */
const MAX_REMEMBERED = 256
const MAX_REMEMBERED_BYTES = 512

/** Stands for an object or a list. */
const NESTED = Object.freeze({})

/** The operations whose value may be a list that is read. */
const LISTING: ReadonlySet<string> = new Set(['ticks', 'forget_all'])

/** A browser's request that the feed understands (docs/reference.md, Shared market data). */
export class FeedRequest {
  /** The one operation that it names, such as `ticks`. */
  readonly operation: string
  /**
   * The members of the request as JSON.parse reads them. Only `ticks` and `forget_all` may have a list. An empty object stands
   * for any other list and for each object: the feed reads none of them, and parsed they can take thirty times the memory of
   * their text.
   */
  readonly fields: ReadonlyMap<string, unknown>
  /** Two requests have the same key exactly when they are equal as JSON values but for `req_id` and `passthrough`. */
  readonly key: string
  /** What every answer to it begins with: a brace, `echo_req` and, where the browser sent them, `req_id` and `passthrough`. */
  readonly prefix: Buffer
  /** The canonical text of each member that goes upstream. The operation comes first, where clients put it. */
  readonly #members: readonly (readonly [key: string, text: string])[]

  constructor(operation: string, parsed: Record<string, unknown>, text: string) {
    const { req_id: _reqId, passthrough: _passthrough, [operation]: subject, ...others } = parsed
    const rest = Object.entries(others).toSorted(([a], [b]) => (a < b ? -1 : 1))
    this.#members = [[operation, subject] as const, ...rest].map(([key, value]) => [key, canonicalText(value)])
    this.operation = operation
    this.fields = new Map(
      Object.entries(parsed).map(([key, value]) => [key, key === operation ? listed(key, value) : unnested(value)]),
    )
    this.key = objectText(this.#members)
    this.prefix = standaloneBuffer(echoing(text))
  }

  /** How many bytes of memory it takes, and what belongs to it, besides its answer. */
  get memoryBytes(): number {
    return BYTES_PER_REQUEST + TEXTS_PER_REQUEST * this.prefix.length
  }

  /** The request as it goes upstream: with a `req_id` of this server's, and nothing by which browsers differ. */
  toUpstream(reqId: number): Buffer {
    return withReqId(this.key, reqId)
  }

  /** The same without `subscribe`. */
  toUpstreamOnce(reqId: number): Buffer {
    return withReqId(objectText(this.#members.filter(([key]) => key !== 'subscribe')), reqId)
  }
}

/**
 * Reads a text message of a browser, which must be valid UTF-8.
 * @returns undefined when the feed must not interpret it, so that it belongs on an upstream socket of the browser's own. It is longer
 *   than 4 KiB or no JSON object; it names no operation or several; its `req_id` is no safe integer, or its `passthrough` no object; or
 *   parsers might disagree about it ({@link isUnambiguous}; for what is not in `passthrough` {@link hasPlainNumbers})
 */
export function parseRequest(message: Buffer): FeedRequest | undefined {
  if (message.length > MAX_REQUEST_BYTES) return undefined
  const text = message.toString()
  const parsed = parsedObject(text)
  if (parsed === undefined || !isUnambiguous(text, parsed)) return undefined
  const [operation, ...others] = Object.keys(parsed).filter((key) => OPERATIONS.has(key))
  if (operation === undefined || others.length > 0 || !isSharable(parsed)) return undefined
  const members = memberTexts(text)
  // The numbers of a passthrough may be written in any way, since it is only copied.
  members.delete('passthrough')
  return [...members.values()].every(hasPlainNumbers) ? new FeedRequest(operation, parsed, text) : undefined
}

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

/**
 * What an error of this server begins with, for any message that belongs on an own socket. Like an error of upstream's, it echoes
 * the request, its `req_id` and its `passthrough` if the message is a JSON object of at most 4 KiB. Otherwise it echoes nothing.
 */
export function prefixOf(message: Buffer): Buffer {
  const text = message.length > MAX_REQUEST_BYTES ? '' : message.toString()
  return Buffer.from(parsedObject(text) === undefined ? '{' : echoing(text))
}

function listed(operation: string, value: unknown): unknown {
  return Array.isArray(value) && LISTING.has(operation) ? value.map(unnested) : unnested(value)
}

function unnested(value: unknown): unknown {
  return typeof value === 'object' && value !== null ? NESTED : value
}

function isSharable(parsed: Record<string, unknown>): boolean {
  const { req_id: reqId = 0, passthrough = {} } = parsed
  return Number.isSafeInteger(reqId) && canonicalText(passthrough).startsWith('{')
}

function withReqId(object: string, reqId: number): Buffer {
  return Buffer.from(`${object.slice(0, -1)},"req_id":${reqId}}`)
}
