import { unpooledConcat } from './unpooled.ts'

/**
 * Frames that leave together, in order. Browsers that get the same frames one after the other share one sequence and its buffer:
 * a next frame is compared only with the latest one that the sequence went on with.
 */
export class FrameSequence {
  /** The last frame. */
  readonly frame: Buffer
  readonly #previous: FrameSequence | undefined
  /** The sequence that the last one went on with. */
  #next: FrameSequence | undefined
  #joined: Buffer | undefined

  constructor(frame: Buffer, previous?: FrameSequence) {
    this.frame = frame
    this.#previous = previous
  }

  /** This sequence and one more frame. */
  with(frame: Buffer): FrameSequence {
    if (this.#next?.frame !== frame) this.#next = new FrameSequence(frame, this)
    return this.#next
  }

  /** All frames in one buffer. */
  joined(): Buffer {
    if (this.#previous === undefined) return this.frame
    return (this.#joined ??= unpooledConcat(this.#all()))
  }

  #all(): Buffer[] {
    const all = [this.frame]
    for (let one = this.#previous; one !== undefined; one = one.#previous) all.push(one.frame)
    return all.toReversed()
  }
}
