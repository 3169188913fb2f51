import type { Metrics } from '../../telemetry/metrics.ts'
import type { Peer } from '../peer.ts'
import { messageBytes } from './frame-of.ts'
import type { FrameSequence } from './frame-sequence.ts'
import type { WriteBatch } from './write-batch.ts'

/** What the outboxes of a feed have in common. */
export interface OutboxHost {
  readonly limits: { readonly conflateBytes: number; readonly maxBufferedBytes: number }
  readonly batch: WriteBatch
  readonly traffic: Metrics['relayTraffic']['to_browser']
  readonly conflated: { messages: number }
}

/**
 * What is sent to a browser. Stream messages that it does not read in time give way to newer ones of the same stream; everything
 * else waits until it is read.
 */
export class Outbox {
  readonly #peer: Peer
  readonly #host: OutboxHost
  readonly #owner: { press(): void }
  /** Frames that leave at the end of the batch. */
  #batched: FrameSequence | undefined
  /** The newest message of each stream since the browser began to be slow. */
  #conflated: Map<string, Buffer> | undefined
  #isClosed = false

  /** @param owner told when more waits than MAX_BUFFERED_BYTES */
  constructor(peer: Peer, host: OutboxHost, owner: { press(): void }) {
    this.#peer = peer
    this.#host = host
    this.#owner = owner
  }

  /** While nothing waits, frames up to this size need no callback. */
  get unwatchedBytes(): number {
    return this.#host.limits.conflateBytes / 2
  }

  /** Sends a stream message, or keeps it until there is room. @param stream what a newer message replaces this one by */
  deliver(frame: Buffer, stream: string): void {
    if (this.#isClosed) return
    this.#count(frame)
    const batched = this.#batched
    // A batch is what one read from upstream brings, so that the rest of it needs no further look for room.
    if (batched !== undefined && this.#conflated === undefined) {
      this.#batched = batched.with(frame)
      return
    }
    const isRoomy = this.#conflated === undefined && this.#peer.waitingBytes <= this.#host.limits.conflateBytes
    if (isRoomy) this.#send(frame)
    else this.#conflate(frame, stream)
  }

  /** Sends a frame that must not be lost. */
  answer(frame: Buffer): void {
    if (this.#isClosed) return
    this.#count(frame)
    this.#send(frame)
  }

  /** Sends the message that waits of a stream, which is its last one. */
  sendConflated(stream: string): void {
    const frame = this.#conflated?.get(stream)
    if (frame === undefined) return
    this.#conflated?.delete(stream)
    this.#send(frame)
  }

  takeBatched(): FrameSequence | undefined {
    const frames = this.#batched
    this.#batched = undefined
    return frames
  }

  write(frames: Buffer): void {
    if (this.#isClosed) return
    this.#peer.write(frames, this.unwatchedBytes)
    if (this.#peer.waitingBytes > this.#host.limits.maxBufferedBytes) this.#owner.press()
  }

  /** Notes that the browser has read something, so that there may be room for what waits. */
  relieve(): void {
    const conflated = this.#conflated
    if (conflated === undefined || this.#peer.waitingBytes > this.#host.limits.conflateBytes / 2) return
    this.#conflated = undefined
    if (conflated.size > 0) this.write(Buffer.concat([...conflated.values()]))
  }

  /** Sends nothing more. */
  close(): void {
    this.#isClosed = true
    this.#conflated = undefined
  }

  #count(frame: Buffer): void {
    const { traffic } = this.#host
    traffic.messages++
    traffic.bytes += messageBytes(frame)
  }

  #send(frame: Buffer): void {
    const { batch } = this.#host
    if (!batch.isOpen) return this.write(frame)
    this.#batched = this.#batched === undefined ? batch.begin(this, frame) : this.#batched.with(frame)
  }

  #conflate(frame: Buffer, stream: string): void {
    const { traffic, conflated } = this.#host
    this.#conflated ??= new Map()
    const older = this.#conflated.get(stream)
    if (older !== undefined) {
      conflated.messages++
      traffic.messages--
      traffic.bytes -= messageBytes(older)
      // The newest goes to the end, so that messages leave in the order in which upstream sent them.
      this.#conflated.delete(stream)
    }
    this.#conflated.set(stream, frame)
  }
}
