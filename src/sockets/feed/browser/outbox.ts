import type { Config } from '../../../config/config.ts'
import type { Metrics } from '../../../telemetry/metrics.ts'
import { BYTES_PER_MESSAGE, type SocketEnd } from '../../socket-end.ts'
import type { WaitingBytes } from '../../waiting-bytes.ts'
import { type FrameSequence, type Recipient, type WriteBatch, messageBytes, standaloneConcat } from '../wire/index.ts'

type MemberLimits = Pick<Config['relay'], 'maxBufferedBytes' | 'slowConsumerMs'> &
  Pick<Config['feed'], 'conflateBytes' | 'requestsPerMinute'>

/** What the browsers of a feed have in common. */
export interface MemberHost {
  readonly limits: MemberLimits
  readonly batch: WriteBatch
  /** Absent where nothing bounds the waiting bytes of the process. */
  readonly waiting?: WaitingBytes
  readonly traffic: Metrics['relayTraffic']['to_browser']
  readonly conflated: { messages: number }
}

/** A frame of this size or more bypasses the batch, which would copy it: it is in memory once, however often it waits. */
const MIN_ALONE_BYTES = 1024

/**
 * The messages for a browser. Stream messages that it does not read in time give way to newer ones of the same stream; everything
 * else waits until it is read.
 */
export class Outbox implements Recipient {
  readonly #end: SocketEnd
  readonly #host: MemberHost
  readonly #onFull: () => void
  /** Frames that leave at the end of the batch. */
  #batched: FrameSequence | undefined
  /** The newest message of each stream since the browser began to be slow. */
  #conflated: Map<string, Buffer> | undefined
  #conflatedBytes = 0
  #isOver = false

  /** @param onFull called when more waits than MAX_BUFFERED_BYTES */
  constructor(end: SocketEnd, host: MemberHost, onFull: () => void) {
    this.#end = end
    this.#host = host
    this.#onFull = onFull
  }

  /** Bytes of the stream messages that wait to be replaced or sent. */
  get conflatedBytes(): number {
    return this.#conflatedBytes
  }

  deliver(frame: Buffer, stream: string): void {
    if (this.#isOver) return
    const isRoomy = this.#conflated === undefined && this.#end.waitingBytes <= this.#host.limits.conflateBytes
    if (isRoomy) this.#send(frame)
    else this.#conflate(frame, stream)
  }

  answer(frame: Buffer, rest?: Buffer): void {
    if (this.#isOver) return
    if (rest === undefined) return this.#send(frame)
    this.#count(messageBytes(frame) + rest.length)
    this.flush()
    this.#end.writeParts(frame, rest)
    this.#press()
  }

  /** Sends a message of the own upstream socket as it is. */
  pass(message: Buffer, isBinary: boolean): void {
    this.#count(message.length)
    this.#end.send(message, isBinary, this.#unwatchedBytes)
  }

  sendConflated(stream: string): void {
    const frame = this.#takeConflated(stream)
    if (frame !== undefined) this.#send(frame)
  }

  /** Sends what waits for the end of the batch. */
  flush(): void {
    const frames = this.#batched
    if (frames === undefined) return
    this.#batched = undefined
    this.#write(frames.joined())
  }

  /** Notes that the browser has read something, so that there may be room for what waits. */
  relieve(): void {
    const conflated = this.#conflated
    if (conflated === undefined || this.#end.waitingBytes > this.#host.limits.conflateBytes / 2) return
    this.#conflated = undefined
    this.#conflatedBytes = 0
    for (const frame of conflated.values()) this.#count(messageBytes(frame))
    this.#write(standaloneConcat([...conflated.values()]))
  }

  end(): void {
    this.#isOver = true
    this.#conflated = undefined
    this.#conflatedBytes = 0
  }

  /** While nothing waits, frames of up to this many bytes need no callback: with them alone, and a pong, no limit is near. */
  get #unwatchedBytes(): number {
    return this.#host.limits.conflateBytes / 4
  }

  #write(frames: Buffer): void {
    this.#end.write(frames, this.#unwatchedBytes)
    this.#press()
  }

  #press(): void {
    if (this.#end.waitingBytes > this.#host.limits.maxBufferedBytes) this.#onFull()
  }

  /** Counts a message that leaves. The metrics must never fall, so one that may be replaced is not counted yet. */
  #count(bytes: number): void {
    const { traffic } = this.#host
    traffic.messages++
    traffic.bytes += bytes
  }

  #send(frame: Buffer): void {
    this.#count(messageBytes(frame))
    const { batch } = this.#host
    if (batch.isOpen && frame.length < MIN_ALONE_BYTES) {
      this.#batched = this.#batched?.with(frame) ?? batch.begin(this, frame)
      return
    }
    this.flush()
    this.#write(frame)
  }

  #conflate(frame: Buffer, stream: string): void {
    this.#conflated ??= new Map()
    // The newest goes to the end, so that messages leave in the order in which upstream sent them.
    const isNewer = this.#takeConflated(stream) !== undefined
    if (isNewer) this.#host.conflated.messages++
    this.#conflated.set(stream, frame)
    const bytes = frame.length + BYTES_PER_MESSAGE
    this.#conflatedBytes += bytes
    if (!isNewer) this.#host.waiting?.add(bytes)
  }

  #takeConflated(stream: string): Buffer | undefined {
    const frame = this.#conflated?.get(stream)
    if (frame === undefined) return undefined
    this.#conflated?.delete(stream)
    this.#conflatedBytes -= frame.length + BYTES_PER_MESSAGE
    return frame
  }
}
