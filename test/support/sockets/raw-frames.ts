import { createHash } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'

/** The fields of a frame (RFC 6455 §5.2), valid or not. */
export interface Frame {
  readonly opcode: number
  readonly payload?: Buffer | string
  readonly fin?: boolean
  /** Reserved bits, 0x40 to 0x10. */
  readonly rsv?: number
  readonly masked?: boolean
  /** The length to announce, where it is not the payload's. */
  readonly announced?: number
}

/** A frame as it is on the wire. */
export function frame({ opcode, payload = '', fin = true, rsv = 0, masked = false, announced }: Frame): Buffer {
  const data = Buffer.from(payload)
  const length = announced ?? data.length
  const head = [(fin ? 0x80 : 0) | rsv | opcode]
  const mask = masked ? 0x80 : 0
  const tail = Buffer.alloc(8)
  if (length < 126) head.push(mask | length)
  else if (length < 65_536) {
    head.push(mask | 126)
    tail.writeUInt16BE(length)
  } else {
    head.push(mask | 127)
    tail.writeBigUInt64BE(BigInt(length))
  }
  const lengthBytes = length < 126 ? 0 : length < 65_536 ? 2 : 8
  // A mask of zeros is valid.
  return Buffer.concat([Buffer.from(head), tail.subarray(0, lengthBytes), Buffer.alloc(masked ? 4 : 0), data])
}

/** The code of the first close frame in these bytes; undefined without a close frame or without a code. */
export function closeCode(bytes: Buffer): number | undefined {
  let at = 0
  while (at + 2 <= bytes.length) {
    const opcode = (bytes[at] ?? 0) & 0x0f
    const second = bytes[at + 1] ?? 0
    let length = second & 0x7f
    at += 2
    if (length === 126) {
      length = bytes.readUInt16BE(at)
      at += 2
    } else if (length === 127) {
      length = Number(bytes.readBigUInt64BE(at))
      at += 8
    }
    const mask = (second & 0x80) === 0 ? Buffer.alloc(4) : bytes.subarray(at, at + 4)
    at += (second & 0x80) === 0 ? 0 : 4
    if (opcode === 8) {
      if (length < 2) return undefined
      return (((bytes[at] ?? 0) ^ (mask[0] ?? 0)) << 8) | ((bytes[at + 1] ?? 0) ^ (mask[1] ?? 0))
    }
    at += length
  }
  return undefined
}

/** Writes the response to a handshake (RFC 6455 §4.2.2). */
export function switchProtocols(request: IncomingMessage, socket: Duplex): void {
  const key = `${request.headers['sec-websocket-key'] ?? ''}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`
  const accept = createHash('sha1').update(key).digest('base64')
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
  )
}
