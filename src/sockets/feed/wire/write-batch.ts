import { standaloneConcat } from './frame-of.ts'

/**
 * The frames that one browser gets in a batch, in order. It is a linked list that browsers share: if the next browser gets the same
 * frame after the same frames, it gets the same list, so that {@link joined} copies them into one buffer for all of these browsers.
 * Each list remembers only the latest frame that was added to it.
 */
export class FrameSequence {
  readonly frame: Buffer
  readonly #previous: FrameSequence | undefined
  /** This sequence with the latest frame that was added. */
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
    return (this.#joined ??= standaloneConcat(this.#all()))
  }

  #all(): Buffer[] {
    const all = [this.frame]
    for (let one = this.#previous; one !== undefined; one = one.#previous) all.push(one.frame)
    return all.toReversed()
  }
}

/** A browser that has frames that wait for the end of a batch. */
interface Batched {
  /** Sends the frames that have waited, if there are any. */
  flush(): void
}

/** The frames of the messages that were read from upstream together: they leave in one write to each browser. */
export class WriteBatch {
  #isOpen = false
  #browsers: Batched[] = []
  /** What the frames of the latest browser begin with. */
  #first: FrameSequence | undefined

  /** Whether frames must wait for now. */
  get isOpen(): boolean {
    return this.#isOpen
  }

  /** Lets frames wait until {@link flush} is called, or until the end of this turn of the event loop at the latest. */
  open(): void {
    if (this.#isOpen) return
    this.#isOpen = true
    process.nextTick(WriteBatch.#flush, this)
  }

  /** To be called by every browser whose first frame waits. @returns the frames that wait for it */
  begin(browser: Batched, frame: Buffer): FrameSequence {
    this.#browsers.push(browser)
    if (this.#first?.frame !== frame) this.#first = new FrameSequence(frame)
    return this.#first
  }

  /** Sends everything that has waited so far. The rest of the batch waits on. */
  settle(): void {
    const waiting = this.#browsers
    this.#browsers = []
    this.#first = undefined
    for (const browser of waiting) browser.flush()
  }

  /** Sends everything that has waited, and ends the batch. */
  flush(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.settle()
  }

  static #flush(this: void, batch: WriteBatch): void {
    batch.flush()
  }
}
