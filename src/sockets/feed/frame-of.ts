const FIN_TEXT = 0x81
/** Up to this size the second byte of the header is the size; up to 65,535 the next two bytes are, above that the next eight. */
const MAX_SHORT = 125
const MAX_TWO_BYTES = 0xffff
const TWO_BYTES = 126
const EIGHT_BYTES = 127

/** The parts of one text message, in order: the prefix of a request, then what upstream said. They are copied. */
export type MessageParts = readonly Buffer[]

/** One unmasked frame with a whole text message, which is what a server sends (RFC 6455 §5.2). */
export function frameOf(...parts: MessageParts): Buffer {
  const payload = payloadBytes(parts)
  const frame = Buffer.allocUnsafe(headerBytes(payload) + payload)
  writeFrame(frame, 0, payload, parts)
  return frame
}

/** The size of the message in a frame. */
export function messageBytes(frame: Buffer): number {
  const size = frame[1] ?? 0
  if (size <= MAX_SHORT) return frame.length - 2
  return frame.length - (size === TWO_BYTES ? 4 : 10)
}

/** One buffer with the frames of several messages, in order. */
export function framesOf(messages: readonly MessageParts[]): Buffer {
  const payloads = messages.map(payloadBytes)
  const size = payloads.reduce((sum, payload) => sum + headerBytes(payload) + payload, 0)
  const frames = Buffer.allocUnsafe(size)
  let at = 0
  for (const [index, parts] of messages.entries()) at = writeFrame(frames, at, payloads[index] ?? 0, parts)
  return frames
}

function payloadBytes(parts: MessageParts): number {
  let bytes = 0
  for (const part of parts) bytes += part.length
  return bytes
}

function headerBytes(payload: number): number {
  if (payload <= MAX_SHORT) return 2
  return payload <= MAX_TWO_BYTES ? 4 : 10
}

/** Writes a frame at `start`. @returns where it ends */
function writeFrame(target: Buffer, start: number, payload: number, parts: MessageParts): number {
  target[start] = FIN_TEXT
  if (payload <= MAX_SHORT) target[start + 1] = payload
  else if (payload <= MAX_TWO_BYTES) {
    target[start + 1] = TWO_BYTES
    target.writeUInt16BE(payload, start + 2)
  } else {
    target[start + 1] = EIGHT_BYTES
    target.writeBigUInt64BE(BigInt(payload), start + 2)
  }
  let at = start + headerBytes(payload)
  for (const part of parts) {
    target.set(part, at)
    at += part.length
  }
  return at
}
