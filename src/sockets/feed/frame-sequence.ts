/**
 * Frames that leave together, in order. Browsers that get the same frames share one sequence and its buffer: each frame is only
 * compared with the one that the browser before has got.
 */
export class FrameSequence {
  /** The last frame. */
  readonly frame: Buffer
  readonly #previous: FrameSequence | undefined
  /** The sequence that the browser before went on with. */
  #next: FrameSequence | undefined
  #joined: Buffer | undefined

  constructor(frame: Buffer, previous?: FrameSequence) {
    this.frame = frame
    this.#previous = previous
  }

  /** This sequence and one more frame. */
  with(frame: Buffer): FrameSequence {
    const next = this.#next
    if (next?.frame === frame) return next
    return (this.#next = new FrameSequence(frame, this))
  }

  /** All frames in one buffer. */
  joined(): Buffer {
    if (this.#joined !== undefined) return this.#joined
    if (this.#previous === undefined) return this.frame
    const frames = [this.frame]
    for (let each: FrameSequence | undefined = this.#previous; each !== undefined; each = each.#previous)
      frames.push(each.frame)
    return (this.#joined = Buffer.concat(frames.toReversed()))
  }
}
