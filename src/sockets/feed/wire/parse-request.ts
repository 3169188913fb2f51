import { OPERATIONS } from '../../operations.ts'
import { canonicalMembers, objectText, type CanonicalMembers } from './canonical.ts'
import { eachMember } from './json-members.ts'
import { standaloneBuffer } from './frame-of.ts'

/** A browser's request that the feed understands (docs/reference.md, Shared market data). */
export interface FeedRequest {
  /** The one operation that it names, such as `ticks`. */
  readonly operation: string
  /**
   * Its members as JSON.parse reads them. Only `ticks` and `forget_all` may have a list. An empty object stands for any other
   * list and for each object, since the feed reads none of them, and parsed they can take thirty times the memory of their text.
   */
  readonly fields: ReadonlyMap<string, unknown>
  /** Two requests have the same key exactly when they are equal as JSON values but for `req_id` and `passthrough`. */
  readonly key: string
  /** What every answer to it begins with: a brace, `echo_req` and, where the browser sent them, `req_id` and `passthrough`. */
  readonly prefix: Buffer
  /** The request as it goes upstream: with a `req_id` of this server's, and nothing by which browsers differ. */
  toUpstream(reqId: number): Buffer
  /** The same without `subscribe`. */
  toUpstreamOnce(reqId: number): Buffer
}

/** Real requests have a few hundred bytes. Every message of a stream repeats its request, so long ones could cause a flood. */
const MAX_REQUEST_BYTES = 4096

/** Memory of a request: a fixed part in bytes, and its text in this many forms. */
const BYTES_PER_REQUEST = 4096
const TEXTS_PER_REQUEST = 4

/** Stands for an object or a list. */
const NESTED = Object.freeze({})

/** The operations whose value may be a list that is read. */
const LISTING: ReadonlySet<string> = new Set(['ticks', 'forget_all'])

/**
 * Reads a text message of a browser, which must be valid UTF-8.
 * @returns undefined when the feed must not interpret it, so that it belongs on an upstream socket of the browser's own: it is no
 *   JSON object, names no operation or several, has a `req_id` that is no safe integer or a `passthrough` that is no object,
 *   is longer than 4 KiB, or parsers might disagree about it (see {@link canonicalMembers})
 */
export function parseRequest(message: Buffer): FeedRequest | undefined {
  if (message.length > MAX_REQUEST_BYTES) return undefined
  const text = message.toString()
  const parsed = parseObject(text)
  if (parsed === undefined) return undefined
  const members = canonicalMembers(text, 'passthrough')
  if (members === undefined) return undefined
  const operation = onlyOperation(members)
  const entries = Object.entries(parsed)
  if (operation === undefined || !isSharable(new Map(entries))) return undefined
  const fields = new Map(entries.map(([key, value]) => [key, key === operation ? listed(key, value) : unnested(value)]))
  return new ParsedRequest(operation, fields, members, text.trim())
}

/**
 * What an error of this server begins with, for any message that belongs on an own socket. Like an error of upstream's, it echoes
 * the request, its `req_id` and its `passthrough` if the message is a JSON object of at most 4 KiB. Otherwise it echoes nothing.
 */
export function prefixOf(message: Buffer): Buffer {
  const text = message.length > MAX_REQUEST_BYTES ? '' : message.toString()
  if (parseObject(text) === undefined) return Buffer.from('{')
  const bytes = message.toString('latin1')
  // Of duplicate keys the last one counts, as for JSON.parse.
  const own = new Map<string, string>()
  eachMember(bytes, (key, _start, valueStart, end) => {
    if (key === 'req_id' || key === 'passthrough') own.set(key, message.toString('utf8', valueStart, end))
  })
  return Buffer.from(`{"echo_req":${text.trim()},${memberText(own, 'req_id')}${memberText(own, 'passthrough')}`)
}

/** How many bytes of memory a request takes, and what belongs to it, besides its answer. */
export function memoryOf({ prefix }: FeedRequest): number {
  return BYTES_PER_REQUEST + TEXTS_PER_REQUEST * prefix.length
}

class ParsedRequest implements FeedRequest {
  readonly operation: string
  readonly fields: ReadonlyMap<string, unknown>
  readonly key: string
  readonly prefix: Buffer
  readonly #members: CanonicalMembers

  constructor(operation: string, fields: ReadonlyMap<string, unknown>, members: CanonicalMembers, text: string) {
    this.operation = operation
    this.fields = fields
    this.#members = members
    this.key = this.#without(['req_id', 'passthrough'])
    this.prefix = standaloneBuffer(
      `{"echo_req":${text},${memberText(members, 'req_id')}${memberText(members, 'passthrough')}`,
    )
  }

  toUpstream(reqId: number): Buffer {
    return withReqId(this.key, reqId)
  }

  toUpstreamOnce(reqId: number): Buffer {
    return withReqId(this.#without(['req_id', 'passthrough', 'subscribe']), reqId)
  }

  /** The request in canonical text. The operation comes first, where clients put it. */
  #without(keys: readonly string[]): string {
    const { operation } = this
    const rest = [...this.#members].filter(([key]) => key !== operation && !keys.includes(key))
    return objectText([[operation, this.#members.get(operation) ?? ''], ...rest])
  }
}

function parseObject(text: string): Record<string, unknown> | undefined {
  // Other JSON values need not be parsed.
  if (!/^[ \t\r\n]*\{/.test(text)) return undefined
  try {
    return JSON.parse(text) as Record<string, unknown>
  } catch {
    return undefined
  }
}

function onlyOperation(members: CanonicalMembers): string | undefined {
  const [operation, ...others] = [...members.keys()].filter((key) => OPERATIONS.has(key))
  return others.length === 0 ? operation : undefined
}

function listed(operation: string, value: unknown): unknown {
  return Array.isArray(value) && LISTING.has(operation) ? value.map(unnested) : unnested(value)
}

function unnested(value: unknown): unknown {
  return typeof value === 'object' && value !== null ? NESTED : value
}

function isSharable(fields: ReadonlyMap<string, unknown>): boolean {
  const passthrough = fields.get('passthrough')
  const isObject = typeof passthrough === 'object' && passthrough !== null && !Array.isArray(passthrough)
  return (
    (!fields.has('req_id') || Number.isSafeInteger(fields.get('req_id'))) && (!fields.has('passthrough') || isObject)
  )
}

function memberText(members: ReadonlyMap<string, string>, key: string): string {
  const text = members.get(key)
  return text === undefined ? '' : `"${key}":${text},`
}

function withReqId(object: string, reqId: number): Buffer {
  return Buffer.from(`${object.slice(0, -1)},"req_id":${reqId}}`)
}
