const FIN = 0x80
const OPCODE_TEXT = 1
const OPCODE_BINARY = 2
/** Up to this size the second byte of the header is the length; up to 65,535 the next two bytes are (RFC 6455 §5.2). */
const MAX_SHORT = 125
const TWO_BYTES = 126
/** Node allocates small buffers from a shared pool of this size. */
const POOL_BYTES = Buffer.allocUnsafe(1).buffer.byteLength

/**
 * The frame that an unmasked message arrived in, header included, so that it can be sent on without a copy. The header lies
 * before the payload in the buffer that was read from the connection; this function verifies its bytes. Undefined when they
 * are no such header: the message came in fragments, or is so long that the copy does not matter.
 */
export function wholeFrame(message: Buffer, isBinary: boolean): Buffer | undefined {
  const { buffer, byteOffset, length } = message
  const headerBytes = length <= MAX_SHORT ? 2 : 4
  // In the pool, the bytes before the payload belong to another buffer, whose owner may change them before they are sent.
  if (length > 0xffff || byteOffset < headerBytes || buffer.byteLength === POOL_BYTES) return undefined
  const frame = Buffer.from(buffer, byteOffset - headerBytes, headerBytes + length)
  if (frame[0] !== (FIN | (isBinary ? OPCODE_BINARY : OPCODE_TEXT))) return undefined
  if (headerBytes === 2) return frame[1] === length ? frame : undefined
  const isHeader = frame[1] === TWO_BYTES && frame[2] === length >> 8 && frame[3] === (length & 0xff)
  return isHeader ? frame : undefined
}
