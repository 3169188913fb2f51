import { refusing } from '../../upstream-error.ts'
import type { UpstreamMessage } from './dissect.ts'
import { frameOf, startOfFrame } from './frame-of.ts'
import type { FeedRequest } from './parse-request.ts'

/** What gets the frames for a browser. */
export interface Recipient {
  /** Sends a message of a stream. A slow browser gets only the newest of each stream, once there is room for it. */
  deliver(frame: Buffer, stream: string): void
  /** Sends the message of a stream that waits for a slow browser, before something that must come after it. */
  sendConflated(stream: string): void
  /** Sends a frame that must not be lost. @param rest the end of the frame, if others get it too: it is not copied */
  answer(frame: Buffer, rest?: Buffer): void
}

/** From this length on, a copy of a body costs more than a second buffer in a write. */
const MIN_SHARED_BYTES = 1024
/** Beginnings of pages' answers are shorter. A frame that begins with more is not kept for others, since that takes memory. */
const MAX_KEPT_PREFIX_BYTES = 1024

/**
 * One answer for many browsers. Pages of one build ask with the same `req_id`, so the latest frame often fits the next browser.
 * For a browser whose answers begin otherwise, a long body is not copied: it is in memory once, however often it waits to be sent.
 */
export class AnswerFrame {
  readonly #subscription: Buffer
  readonly #body: Buffer
  #prefix: Buffer | undefined
  #frame: Buffer | undefined

  /** @param subscription replaces that of the answer */
  constructor(answer: UpstreamMessage, subscription = answer.subscription) {
    this.#subscription = subscription
    this.#body = answer.body
  }

  /** The memory that it takes: that of the body, and of its copy in the latest frame. A short prefix does not count. */
  get bytes(): number {
    return 2 * this.#body.length
  }

  /** Answers a browser whose answers begin like this. */
  send(recipient: Pick<Recipient, 'answer'>, prefix: Buffer): void {
    const body = this.#body
    const frame = this.#frameFor(prefix)
    if (frame === undefined) recipient.answer(startOfFrame(body.length, prefix, this.#subscription), body)
    else recipient.answer(frame)
  }

  /** The whole frame, unless another one of a long body is there already, or it must not be kept. */
  #frameFor(prefix: Buffer): Buffer | undefined {
    if (prefix.length > MAX_KEPT_PREFIX_BYTES) return undefined
    if (this.#frame !== undefined && this.#prefix?.equals(prefix) === true) return this.#frame
    if (this.#frame !== undefined && this.#body.length >= MIN_SHARED_BYTES) return undefined
    this.#prefix = prefix
    this.#frame = frameOf(prefix, this.#subscription, this.#body)
    return this.#frame
  }
}

/** A frame that answers a request beyond a limit of this server (docs/reference.md, Shared market data). */
export function rateLimitError(request: Pick<FeedRequest, 'operation' | 'prefix'>): Buffer {
  return errorAnswer(request, 'RateLimit', `You have reached the rate limit for ${request.operation}.`)
}

/** A frame that answers a subscription which the browser has already. */
export function alreadySubscribed(request: FeedRequest, symbol: string): Buffer {
  return errorAnswer(request, 'AlreadySubscribed', `You are already subscribed to ${symbol}`)
}

/** A frame with an answer of this server's. @param value the value of the member that has the name of the operation */
export function localAnswer({ operation, prefix }: FeedRequest, value: unknown): Buffer {
  return frameOf(prefix, Buffer.from(`"${operation}":${JSON.stringify(value)},"msg_type":"${operation}"}`))
}

function errorAnswer(request: Pick<FeedRequest, 'operation' | 'prefix'>, code: string, message: string): Buffer {
  const { operation, prefix } = request
  return frameOf(prefix, Buffer.from(refusing(operation, code, message)))
}
