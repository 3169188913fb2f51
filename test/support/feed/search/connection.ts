import type { Duplex } from 'node:stream'
import type { WebSocket } from 'ws'
import { nextEvent } from '../../time/until.ts'
import type { Members } from './canonical-json.ts'
import type { Demand, Subject } from './demand.ts'
import { unicode } from './request-texts.ts'

/** Longer than the server needs to read the first half of a split message. */
const SPLIT_MS = 3

/** An upstream subscription. */
export interface UpstreamStream {
  readonly id: string
  readonly demand: Demand
  readonly subject: Subject
  isOver: boolean
  /** Whether it has sent a message. */
  hasSent: boolean
}

/** A connection of the server's, on which upstream writes frames as bytes. */
export class Connection {
  readonly socket: WebSocket
  readonly streams: UpstreamStream[] = []
  /** The place of the newest price of each symbol that it knows. */
  readonly known = new Map<string, number>()
  /** Whether upstream owes an answer that it will never give. */
  isOwing = false
  isSilent = false
  readonly #random: () => number
  #queue: Buffer[] = []
  #isBusy = false

  /** @param random decides on the layout of its messages */
  constructor(socket: WebSocket, random: () => number) {
    this.socket = socket
    this.#random = random
  }

  get isOpen(): boolean {
    return this.socket.readyState === this.socket.OPEN
  }

  get wire(): Duplex {
    // oxlint-disable-next-line no-underscore-dangle -- ws has no other name for it
    return (this.socket as unknown as { readonly _socket: Duplex })._socket
  }

  running(): UpstreamStream[] {
    return this.streams.filter(({ isOver }) => !isOver)
  }

  /** Sends a message in a random layout: order of members, white space, escapes. */
  write(members: Members, isSplit = false): void {
    const texts = [...members].map(([key, value]) => this.#layout(`${JSON.stringify(key)}:${value}`))
    const order = texts.map((text) => ({ text, place: this.#random() })).toSorted((a, b) => a.place - b.place)
    this.send(`{${order.map(({ text }) => text).join(',')}}`, isSplit)
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

  /** Resolves once the server has read all that was sent. */
  async settled(): Promise<void> {
    if (!this.isOpen) return
    this.socket.ping()
    await nextEvent(this.socket, 'pong').catch(() => undefined)
  }

  #layout(text: string): string {
    return text.replaceAll(/"(?:[^"\\]|\\.)*"|[{}[\]:,]/g, (token) => {
      const dice = this.#random()
      if (dice > 0.94) return ` ${token}\n\t`
      if (dice > 0.03 || !/^"\w+"$/.test(token)) return token
      const at = 1 + Math.floor(this.#random() * (token.length - 2))
      return token.slice(0, at) + unicode(token.charAt(at)) + token.slice(at + 1)
    })
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
