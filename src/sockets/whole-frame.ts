const FIN = 0x80
const OPCODE_TEXT = 1
const OPCODE_BINARY = 2
/** Payloads up to this size have their length in the first byte that is for it; up to 65,535 in the next two (RFC 6455 §5.2). */
const MAX_SHORT = 125
const TWO_BYTES = 126
/** Node copies small buffers into a shared one of this size. */
const POOL_BYTES = Buffer.allocUnsafe(1).buffer.byteLength

/**
 * The frame that a message came in, head included: unmasked and whole, it is the very frame to send on. The head stands
 * before the payload in what was read from the connection; what is there is looked at, so it does not matter how it
 * got there. Undefined when it is another: the message came in pieces, or is long enough for the difference not to matter.
 */
export function wholeFrame(message: Buffer, isBinary: boolean): Buffer | undefined {
  const { buffer, byteOffset, length } = message
  const headBytes = length <= MAX_SHORT ? 2 : 4
  // A copy in the shared one has neighbours of other owners, who may change them before they are sent.
  if (length > 0xffff || byteOffset < headBytes || buffer.byteLength === POOL_BYTES) return undefined
  const frame = Buffer.from(buffer, byteOffset - headBytes, headBytes + length)
  if (frame[0] !== (FIN | (isBinary ? OPCODE_BINARY : OPCODE_TEXT))) return undefined
  if (headBytes === 2) return frame[1] === length ? frame : undefined
  const isSame = frame[1] === TWO_BYTES && frame[2] === length >> 8 && frame[3] === (length & 0xff)
  return isSame ? frame : undefined
}
