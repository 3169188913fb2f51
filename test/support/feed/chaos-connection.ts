import type { Duplex } from 'node:stream'
import type { WebSocket } from 'ws'
import type { Message } from './world.ts'

/** Longer than the server needs to read the first half of a split message. */
const SPLIT_MS = 3

/** An upstream subscription. */
export interface ChaosStream {
  readonly id: string
  readonly request: Message
  readonly symbol: string
  readonly kind: 'ticks' | 'history' | 'candles'
  /** Different for all streams, whatever their ids. */
  readonly generation: number
  isOver: boolean
}

/** A connection of the server's, on which upstream writes frames as bytes. */
export class ChaosConnection {
  readonly socket: WebSocket
  readonly streams: ChaosStream[] = []
  /** Whether upstream owes an answer that it will never give. */
  isOwing = false
  isSilent = false
  #queue: Buffer[] = []
  #isBusy = false

  constructor(socket: WebSocket) {
    this.socket = socket
  }

  get isOpen(): boolean {
    return this.socket.readyState === this.socket.OPEN
  }

  get wire(): Duplex {
    // oxlint-disable-next-line no-underscore-dangle -- ws has no other name for it
    return (this.socket as unknown as { readonly _socket: Duplex })._socket
  }

  running(): ChaosStream[] {
    return this.streams.filter(({ isOver }) => !isOver)
  }

  /** Sends one frame. @param isSplit whether it arrives in two pieces */
  send(payload: string | Buffer, isSplit = false, opcode = 1): void {
    this.#queue.push(frame(opcode, Buffer.from(payload)))
    if (this.#isBusy || this.isSilent || !this.isOpen) return
    const bytes = Buffer.concat(this.#queue)
    this.#queue = []
    if (!isSplit) return void this.wire.write(bytes)
    this.#isBusy = true
    const half = Math.ceil(bytes.length / 2)
    this.wire.write(bytes.subarray(0, half))
    setTimeout(() => {
      if (!this.isOpen) return
      this.wire.write(Buffer.concat([bytes.subarray(half), ...this.#queue]))
      this.#queue = []
      this.#isBusy = false
    }, SPLIT_MS)
  }
}

/** A frame of a server (RFC 6455 §5.2). */
function frame(opcode: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(10)
  head.writeUInt8(0x80 | opcode, 0)
  const { length } = payload
  if (length < 126) head.writeUInt8(length, 1)
  else if (length < 65_536) head.writeUInt16BE(length, head.writeUInt8(126, 1))
  else head.writeBigUInt64BE(BigInt(length), head.writeUInt8(127, 1))
  const size = length < 126 ? 2 : length < 65_536 ? 4 : 10
  return Buffer.concat([head.subarray(0, size), payload])
}
