import type { Socket } from 'node:net'
import { writeAtOnce } from '../peer.ts'
import type { Group } from './audience.ts'
import { FrameSequence } from './frame-sequence.ts'
import { unwatchedBytes, type Outbox, type OutboxHost } from './outbox.ts'

/** What all cohorts work with. */
type CohortHost = Pick<OutboxHost, 'batch' | 'limits' | 'traffic'>

/**
 * Browsers that belong to the same groups, so that they get the same messages of all their streams. The messages that one read
 * from upstream brings are joined once for all of them, and sent in one pass.
 */
export class Cohort {
  readonly key: string
  readonly groups: readonly Group[]
  readonly #host: CohortHost
  /**
   * The connection of each browser, undefined for one that is slow. With it at hand, a pass over thousands of browsers touches
   * no other object of theirs, each of which would have to come from main memory.
   */
  readonly #wires = new Map<Outbox, Socket | undefined>()
  /** Frames that leave at the end of the batch. */
  #batched: FrameSequence | undefined

  constructor(key: string, groups: readonly Group[], host: CohortHost) {
    this.key = key
    this.groups = groups
    this.#host = host
  }

  get size(): number {
    return this.#wires.size
  }

  add(outbox: Outbox): void {
    this.settle()
    outbox.cohort = this
    this.update(outbox)
  }

  remove(outbox: Outbox): void {
    this.settle()
    outbox.cohort = undefined
    this.#wires.delete(outbox)
  }

  /** Notes whether a browser is slow. */
  update(outbox: Outbox): void {
    this.#wires.set(outbox, outbox.wire)
  }

  /** Sends a stream message to all. @param stream its conflation key */
  deliver(frame: Buffer, stream: string): void {
    const { batch } = this.#host
    if (!batch.isOpen) this.#send(new FrameSequence(frame, stream))
    else this.#batched = this.#batched?.with(frame, stream) ?? batch.beginAll(this, frame, stream)
  }

  /** Sends what waits, if there is anything. To be called before one of the browsers comes, goes, or gets a frame of its own. */
  settle(): void {
    if (this.#batched !== undefined) this.#host.batch.settle()
  }

  flush(): void {
    const frames = this.#batched
    this.#batched = undefined
    if (frames !== undefined) this.#send(frames)
  }

  #send(frames: FrameSequence): void {
    const { traffic, limits } = this.#host
    traffic.messages += frames.messages * this.size
    traffic.bytes += frames.bytes * this.size
    const bytes = frames.joined()
    const isShort = bytes.length <= unwatchedBytes(limits)
    for (const [outbox, wire] of this.#wires) {
      if (wire === undefined || !isShort || !writeAtOnce(wire, bytes)) outbox.receive(frames)
    }
  }
}

/** All cohorts of a feed. A browser whose groups change gets its cohort when the next message comes, not at each change. */
export class Cohorts {
  readonly #host: CohortHost
  readonly #byKey = new Map<string, Cohort>()
  /** Those whose groups have changed since the latest message. */
  readonly #unplaced = new Set<Outbox>()

  constructor(host: CohortHost) {
    this.#host = host
  }

  join(outbox: Outbox, group: Group): void {
    this.#displace(outbox)
    outbox.groups.push(group)
  }

  leave(outbox: Outbox, group: Group): void {
    this.#displace(outbox)
    outbox.groups.splice(outbox.groups.indexOf(group), 1)
    if (outbox.groups.length === 0) this.#unplaced.delete(outbox)
  }

  /** Gives a cohort to everybody who has none. To be called before a message is delivered. */
  place(): void {
    for (const outbox of this.#unplaced) {
      this.#cohortOf(outbox.groups).add(outbox)
    }
    this.#unplaced.clear()
  }

  #displace(outbox: Outbox): void {
    const { cohort } = outbox
    this.#unplaced.add(outbox)
    if (cohort === undefined) return
    cohort.remove(outbox)
    if (cohort.size > 0) return
    this.#byKey.delete(cohort.key)
    for (const group of cohort.groups) group.cohorts.delete(cohort)
  }

  #cohortOf(groups: readonly Group[]): Cohort {
    const sorted = groups.toSorted((one, other) => one.id - other.id)
    const key = sorted.map(({ id }) => id).join(' ')
    let cohort = this.#byKey.get(key)
    if (cohort === undefined) {
      cohort = new Cohort(key, sorted, this.#host)
      this.#byKey.set(key, cohort)
      for (const group of sorted) group.cohorts.add(cohort)
    }
    return cohort
  }
}
