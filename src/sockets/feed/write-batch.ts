import { FrameSequence } from './frame-sequence.ts'

/** Who has frames that wait for the end of a batch. */
interface Batched {
  /** Sends the frames that have waited, if there are any. */
  flush(): void
}

/**
 * The frames of the messages that were read from upstream together: they leave in one write to each browser. What waits for
 * single browsers leaves before what waits for cohorts, so a browser must have nothing in its cohort when its own frames begin
 * to wait.
 */
export class WriteBatch {
  #isOpen = false
  #browsers: Batched[] = []
  #cohorts: Batched[] = []
  /** What the frames of the latest browser or cohort begin with. */
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

  /** To be called by every browser whose first frame waits. @returns the frames that wait for it */
  begin(browser: Batched, frame: Buffer): FrameSequence {
    this.#browsers.push(browser)
    return this.#beginning(frame, '')
  }

  /** The same for a cohort. @param stream the conflation key of the message */
  beginAll(cohort: Batched, frame: Buffer, stream: string): FrameSequence {
    this.#cohorts.push(cohort)
    return this.#beginning(frame, stream)
  }

  /** Sends everything that has waited so far. The rest of the batch waits on. */
  settle(): void {
    const waiting = [...this.#browsers, ...this.#cohorts]
    this.#browsers = []
    this.#cohorts = []
    this.#first = undefined
    for (const batched of waiting) batched.flush()
  }

  /** Sends everything that has waited, and ends the batch. */
  flush(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.settle()
  }

  #beginning(frame: Buffer, stream: string): FrameSequence {
    if (this.#first?.frame !== frame) this.#first = new FrameSequence(frame, stream)
    return this.#first
  }

  static #flush(this: void, batch: WriteBatch): void {
    batch.flush()
  }
}
