import { FrameSequence } from './frame-sequence.ts'

/** Who has frames that wait for the end of a batch. */
interface Batched {
  /** Takes the frames that have waited. */
  takeBatched(): FrameSequence | undefined
  /** Sends them, as one buffer. */
  write(frames: Buffer): void
}

/** The frames of the messages that were read from upstream together: they leave in one write to each browser. */
export class WriteBatch {
  #isOpen = false
  #waiting: Batched[] = []
  /** What the latest browser began with. */
  #first: FrameSequence | undefined

  /** Whether frames must wait for now. */
  get isOpen(): boolean {
    return this.#isOpen
  }

  /** Lets frames wait until {@link flush} is called, or until the end of this turn of the event loop at the latest. */
  hold(): void {
    if (this.#isOpen) return
    this.#isOpen = true
    process.nextTick(WriteBatch.#flush, this)
  }

  /** To be called by everybody whose first frame waits. @returns the frames that wait for it */
  begin(member: Batched, frame: Buffer): FrameSequence {
    this.#waiting.push(member)
    if (this.#first?.frame !== frame) this.#first = new FrameSequence(frame)
    return this.#first
  }

  /** Sends everything that has waited. */
  flush(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    const waiting = this.#waiting
    this.#waiting = []
    this.#first = undefined
    for (const member of waiting) {
      const frames = member.takeBatched()
      if (frames !== undefined) member.write(frames.joined())
    }
  }

  static #flush(this: void, batch: WriteBatch): void {
    batch.flush()
  }
}
