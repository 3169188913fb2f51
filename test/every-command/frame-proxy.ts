import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import type { Test } from 'tap'

type End = 'client' | 'server'

/** One direction of a connection. */
export interface Way {
  readonly who: End
  readonly from: Socket
  readonly to: Socket
  /** `mute`: no more pieces are sent on. `dead`: nor is the end. */
  state?: 'mute' | 'dead'
}

/** Does something with a piece instead of sending it on. */
export type Suffer = (piece: Buffer, way: Way, back: Way) => unknown

const OPCODES: Readonly<Record<number, string>> = { 8: 'close', 9: 'ping', 10: 'pong' }

/** A way on which each frame, and each head of a handshake, passes by itself: as a piece. One of them suffers. */
export class FrameProxy {
  readonly port: number
  /** The port to which it leads. */
  target = 0
  /** The piece that has suffered. */
  hit: string | undefined
  /** Resolves once that is over. */
  suffered: unknown
  /** The messages that were sent on since it was armed. */
  passed: Record<End, string[]> = { client: [], server: [] }
  readonly #all = new Set<Socket>()
  readonly #ours = new Set<Socket>()
  readonly #served: End
  #left = -1
  #whose: End | undefined
  #suffer: Suffer | undefined

  private constructor(port: number, served: End) {
    this.port = port
    this.#served = served
  }

  /** Starts one that ends with the test. @param served which end is the server that is tested */
  static async start(t: Test, served: End): Promise<FrameProxy> {
    const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => proxy.#join(client))
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const proxy = new FrameProxy((server.address() as AddressInfo).port, served)
    t.teardown(() => {
      server.close()
      proxy.cut()
    })
    return proxy
  }

  /** How many connections the server that is tested has here. */
  get open(): number {
    return [...this.#ours].filter(({ destroyed }) => !destroyed).length
  }

  /** Has a piece suffer. @param at how many pass before it @param isOfPeer whether only those count that are not the server's */
  arm(at = -1, suffer?: Suffer, isOfPeer = false): void {
    this.hit = this.suffered = undefined
    this.passed = { client: [], server: [] }
    this.#whose = isOfPeer ? (this.#served === 'client' ? 'server' : 'client') : undefined
    this.#left = at
    this.#suffer = suffer
  }

  /** Ends all connections. */
  cut(): void {
    for (const socket of this.#all) socket.destroy()
  }

  #join(client: Socket): void {
    const server = connect({ port: this.target, host: '127.0.0.1', allowHalfOpen: true, noDelay: true })
    const ours = this.#served === 'client' ? client : server
    this.#ours.add(ours)
    ours.on('close', () => this.#ours.delete(ours))
    const [way, back]: Way[] = [
      { who: 'client', from: client, to: server },
      { who: 'server', from: server, to: client },
    ]
    if (way === undefined || back === undefined) return
    this.#lead(way, back)
    this.#lead(back, way)
  }

  #lead(way: Way, back: Way): void {
    const { from, to } = way
    this.#all.add(from)
    const pieces: Buffer[] = []
    let unread: Buffer = Buffer.alloc(0)
    let [isHead, isBusy, isEnded] = [true, false, false]
    const sendOn = async (): Promise<void> => {
      if (isBusy) return
      isBusy = true
      to.cork()
      for (let piece = pieces.shift(); piece !== undefined; piece = pieces.shift()) {
        const suffered = way.state === undefined && this.#send(piece, way, back)
        if (!(suffered instanceof Promise)) continue
        to.uncork()
        await suffered
        to.cork()
      }
      to.uncork()
      isBusy = false
      if (isEnded && way.state !== 'dead') to.end(way.state === undefined ? unread : Buffer.alloc(0))
    }
    from.on('data', (chunk: Buffer) => {
      unread = Buffer.concat([unread, chunk])
      for (let length = lengthOf(unread, isHead); length <= unread.length; length = lengthOf(unread, isHead)) {
        pieces.push(unread.subarray(0, length))
        unread = unread.subarray(length)
        isHead = false
      }
      void sendOn()
    })
    from.on('end', () => {
      isEnded = true
      void sendOn()
    })
    from.on('error', () => way.state !== 'dead' && to.resetAndDestroy())
    from.on('close', () => this.#all.delete(from))
  }

  #send(piece: Buffer, way: Way, back: Way): unknown {
    const { who, to } = way
    const opcode = (piece[0] ?? 0) ^ 0x80
    const text = opcode === 1 ? payloadOf(piece).toString() : undefined
    const written = to.bytesWritten
    const done = (): void => {
      if (text !== undefined && to.bytesWritten - written >= piece.length) this.passed[who].push(text)
    }
    if ((this.#whose ?? who) !== who || this.#left-- !== 0 || this.#suffer === undefined) {
      to.write(piece)
      return done()
    }
    this.hit = `${who}'s ${text?.slice(0, 40) ?? (opcode < 16 ? (OPCODES[opcode] ?? 'frame') : 'handshake')}`
    this.suffered = this.#suffer(piece, way, back)
    if (!(this.suffered instanceof Promise)) return done()
    return (this.suffered = this.suffered.then(done))
  }
}

/** How long the first piece of these bytes is; more than there are if that is not known yet. */
function lengthOf(bytes: Buffer, isHead: boolean): number {
  if (isHead) {
    const end = bytes.indexOf('\r\n\r\n')
    return end === -1 ? Infinity : end + 4
  }
  const header = headerBytes(bytes)
  if (bytes.length < 2 || bytes.length < header) return Infinity
  const size = (bytes[1] ?? 0) & 0x7f
  return header + (size < 126 ? size : size === 126 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2)))
}

/** The bytes before the payload of a frame (RFC 6455 §5.2). */
function headerBytes([, second = 0]: Buffer): number {
  const size = second & 0x7f
  return 2 + (size < 126 ? 0 : size === 126 ? 2 : 8) + (isMasked([0, second]) ? 4 : 0)
}

/** Whether a frame is that of a client. */
export function isMasked([, second = 0]: ArrayLike<number> & Iterable<number>): boolean {
  return (second & 0x80) > 0
}

/** The payload of a frame, without its mask. */
export function payloadOf(piece: Buffer): Buffer {
  const at = headerBytes(piece)
  const payload = piece.subarray(at)
  if (!isMasked(piece)) return payload
  return Buffer.from(payload.map((byte, index) => byte ^ (piece[at - 4 + (index & 3)] ?? 0)))
}
