import type { UpstreamMessage } from './dissect.ts'
import { frameOf } from './frame-of.ts'

/** One answer for many browsers. Pages of one build ask with the same `req_id`, so the latest frame often fits the next browser. */
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

  /** Memory that it takes to keep it: the body, and again in the latest frame. */
  get bytes(): number {
    return 2 * this.#body.length
  }

  /** The frame for a browser whose answers begin like this. */
  for(prefix: Buffer): Buffer {
    if (this.#frame !== undefined && this.#prefix?.equals(prefix) === true) return this.#frame
    this.#prefix = prefix
    this.#frame = frameOf(prefix, this.#subscription, this.#body)
    return this.#frame
  }
}
