import { parsedObject } from '../../../http/parsed-object.ts'
import { eachMember } from '../../json-text.ts'

/** A message from upstream: what the feed must know about it, and the text that browsers get. */
export interface UpstreamMessage {
  /** `req_id`, or that in `echo_req` if the message has none itself. Undefined when there is none or it is no safe integer. */
  readonly reqId: number | undefined
  /** The code of an error, empty if the error has none. Undefined when the message is no error. */
  readonly errorCode: string | undefined
  /** `subscription.id`, which the messages of a stream have. */
  readonly subscriptionId: string | undefined
  /** The member `subscription` as upstream wrote it, and a comma: it goes between a prefix and a body. Empty if there is none. */
  readonly subscription: Buffer
  /** The same for all browsers: the other members as upstream wrote them, and the closing brace. It follows a prefix. */
  readonly body: Buffer
}

const COMMA = 0x2c
const CLOSE_BRACE = 0x7d

/**
 * Takes apart a text message from upstream (docs/upstream.md, Messages). It is parsed to read it and cut to pass it on, never
 * printed again: every number, escape and space inside a value stays as upstream wrote it.
 * @returns undefined when the message is no JSON object, or has nothing to pass on
 */
export function dissect(message: Buffer): UpstreamMessage | undefined {
  const parsed = parsedObject(message.toString())
  if (parsed === undefined) return undefined
  const subscription: number[] = []
  const kept: number[] = []
  eachMember(message.toString('latin1'), (key, start, _valueStart, end) => {
    // Every browser gets its own of these.
    if (key === 'echo_req' || key === 'req_id' || key === 'passthrough') return
    const spans = key === 'subscription' ? subscription : kept
    spans.push(start, end)
  })
  if (kept.length === 0) return undefined
  const error = parsed['error']
  return {
    reqId: integer(parsed['req_id'] ?? memberOf(parsed['echo_req'], 'req_id')),
    errorCode: error === undefined || error === null ? undefined : (text(memberOf(error, 'code')) ?? ''),
    subscriptionId: text(memberOf(parsed['subscription'], 'id')),
    subscription: joined(message, subscription, COMMA),
    body: joined(message, kept, CLOSE_BRACE),
  }
}

function memberOf(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[key] : undefined
}

function integer(value: unknown): number | undefined {
  return Number.isSafeInteger(value) ? (value as number) : undefined
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

/** The pieces of `bytes` that `spans` delimits in pairs of start and end, each followed by a comma but the last by `closing`. */
function joined(bytes: Buffer, spans: readonly number[], closing: number): Buffer {
  let size = 0
  for (let at = 0; at < spans.length; at += 2) size += (spans[at + 1] ?? 0) - (spans[at] ?? 0) + 1
  // In memory of their own, see standaloneBuffer in frame-of.ts.
  const pieces = Buffer.allocUnsafeSlow(size)
  let to = 0
  for (let at = 0; at < spans.length; at += 2) {
    to += bytes.copy(pieces, to, spans[at], spans[at + 1])
    pieces[to++] = COMMA
  }
  if (size > 0) pieces[size - 1] = closing
  return pieces
}
