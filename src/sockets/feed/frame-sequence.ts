import { messageBytes } from './frame-of.ts'
import { unpooledConcat } from './unpooled.ts'

/**
 * Frames that leave together, in order. Browsers that get the same frames one after the other share one sequence and its buffer:
 * a next frame is compared only with the latest one that the sequence went on with.
 */
export class FrameSequence {
  /** The last frame. */
  readonly frame: Buffer
  /** The conflation key of the last frame: for a slow browser a newer frame with the same key replaces it. Empty if none may. */
  readonly stream: string
  /** How many frames there are, and the bytes of their messages. */
  readonly messages: number
  readonly bytes: number
  readonly #previous: FrameSequence | undefined
  /** The sequence that the last one went on with. */
  #next: FrameSequence | undefined
  #joined: Buffer | undefined

  constructor(frame: Buffer, stream = '', previous?: FrameSequence) {
    this.frame = frame
    this.stream = stream
    this.messages = (previous?.messages ?? 0) + 1
    this.bytes = (previous?.bytes ?? 0) + messageBytes(frame)
    this.#previous = previous
  }

  /** This sequence and one more frame. */
  with(frame: Buffer, stream = ''): FrameSequence {
    const next = this.#next
    if (next?.frame === frame) return next
    return (this.#next = new FrameSequence(frame, stream, this))
  }

  /** The sequences that end with each of the frames, the longest last. */
  each(): FrameSequence[] {
    const all: FrameSequence[] = [this]
    for (let one = this.#previous; one !== undefined; one = one.#previous) all.push(one)
    return all.toReversed()
  }

  /** All frames in one buffer. */
  joined(): Buffer {
    if (this.#previous === undefined) return this.frame
    return (this.#joined ??= unpooledConcat(this.each().map(({ frame }) => frame)))
  }
}
