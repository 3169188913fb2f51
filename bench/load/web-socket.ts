import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect, type AddressInfo, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'

/** RFC 6455 §1.3. */
const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'
const MASK_BIT = 0x80
const OPCODE_BITS = 0x0f
const TEXT_FRAME = 0x81
const PONG_FRAME = 0x8a
const MASK = randomBytes(4)

const NOTHING = Buffer.alloc(0)

export const TEXT = 1
export const CLOSE = 8
export const PING = 9

/** Accepts WebSockets on a port, any free one by default. @returns the port */
export async function acceptSockets(serve: (socket: Duplex) => void, port = 0): Promise<number> {
  const server = createServer()
  server.on('upgrade', (request, socket) => {
    socket.write(acceptance(request.headers['sec-websocket-key']))
    socket.on('error', () => undefined)
    // The HTTP server keeps half-open sockets.
    socket.on('end', () => socket.end())
    serve(socket)
  })
  await once(server.listen({ port, host: '127.0.0.1', backlog: 4096 }), 'listening')
  return (server.address() as AddressInfo).port
}

/** Opens a WebSocket. @returns also what came after the handshake; undefined if the server refuses it */
export async function openSocket(
  port: number,
  handshake: string,
): Promise<{ socket: Socket; rest: Buffer } | undefined> {
  const socket = connect(port, '127.0.0.1').setNoDelay()
  socket.on('error', () => undefined)
  socket.write(handshake)
  const chunk = await Promise.race([
    once(socket, 'data').then(([data]) => data as Buffer),
    once(socket, 'close').then(() => undefined),
  ])
  const end = chunk?.indexOf('\r\n\r\n') ?? -1
  const isOpen = chunk?.toString('latin1', 0, 13) === 'HTTP/1.1 101 '
  return chunk !== undefined && isOpen && end !== -1 ? { socket, rest: chunk.subarray(end + 4) } : undefined
}

/** The response to a handshake with this key (RFC 6455 §4.2.2). */
function acceptance(key: string | undefined): string {
  const accept = createHash('sha1').update(`${key}${GUID}`).digest('base64')
  const lines = ['HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket', 'Connection: Upgrade']
  return `${lines.join('\r\n')}\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`
}

/** A whole message in one frame (RFC 6455 §5.2). A browser's must be masked. */
export function frameOf(payload: string | Buffer, isMasked: boolean, first = TEXT_FRAME): Buffer {
  const bytes = Buffer.from(payload)
  const maskBit = isMasked ? MASK_BIT : 0
  const header =
    bytes.length < 126
      ? Buffer.from([first, maskBit | bytes.length])
      : bytes.length < 65_536
        ? Buffer.from([first, maskBit | 126, bytes.length >> 8, bytes.length & 255])
        : Buffer.concat([Buffer.from([first, maskBit | 127, 0, 0, 0, 0]), uint32(bytes.length)])
  if (!isMasked) return Buffer.concat([header, bytes])
  return Buffer.concat([header, MASK, unmasked(bytes, MASK)])
}

/** The response to a ping. */
export const pongOf = (payload: Buffer, isMasked: boolean): Buffer => frameOf(payload, isMasked, PONG_FRAME)

/**
 * Reads frames from chunks of bytes.
 * @param keeps whether payloads are needed; else they are only skipped, which costs almost nothing
 */
export class FrameReader {
  readonly #keeps: boolean
  readonly #onFrame: (opcode: number, payload: Buffer) => void
  #rest: Buffer = NOTHING
  #skip = 0

  constructor(keeps: boolean, onFrame: (opcode: number, payload: Buffer) => void) {
    this.#keeps = keeps
    this.#onFrame = onFrame
  }

  read(chunk: Buffer): void {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    if (bytes.length < this.#skip) {
      this.#skip -= bytes.length
      return
    }
    let at = this.#skip
    if (at > 0) this.#onFrame(TEXT, NOTHING)
    this.#skip = 0
    while (at < bytes.length) {
      const header = headerAt(bytes, at)
      if (header === undefined) break
      const end = header.start + header.length
      const isSkipped = !this.#keeps && header.opcode === TEXT
      if (end > bytes.length) {
        if (isSkipped) this.#skip = end - bytes.length
        break
      }
      at = end
      this.#emit(header, isSkipped ? NOTHING : bytes.subarray(header.start, end))
    }
    this.#rest = this.#skip > 0 || at >= bytes.length ? NOTHING : Buffer.from(bytes.subarray(at))
  }

  #emit({ opcode, mask }: Header, payload: Buffer): void {
    this.#onFrame(opcode, mask === undefined ? payload : unmasked(payload, mask))
  }
}

interface Header {
  readonly opcode: number
  /** Where the payload starts. */
  readonly start: number
  readonly length: number
  readonly mask: Buffer | undefined
}

/** The header of the frame at an offset; undefined if it is not complete. */
function headerAt(bytes: Buffer, at: number): Header | undefined {
  if (bytes.length < at + 14 && bytes.length < at + headerBytes(bytes[at + 1])) return undefined
  const second = bytes[at + 1] ?? 0
  const short = second & ~MASK_BIT
  const length = short < 126 ? short : short === 126 ? bytes.readUInt16BE(at + 2) : bytes.readUInt32BE(at + 6)
  const start = at + headerBytes(second)
  const mask = (second & MASK_BIT) === 0 ? undefined : bytes.subarray(start - 4, start)
  return { opcode: (bytes[at] ?? 0) & OPCODE_BITS, start, length, mask }
}

/** The length of a header by its second byte. */
function headerBytes(second = 0): number {
  const short = second & ~MASK_BIT
  return 2 + (short === 126 ? 2 : short === 127 ? 8 : 0) + ((second & MASK_BIT) === 0 ? 0 : 4)
}

function unmasked(bytes: Buffer, mask: Buffer): Buffer {
  return bytes.map((byte, index) => byte ^ (mask[index & 3] ?? 0)) as Buffer
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}
