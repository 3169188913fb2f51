const FIN_TEXT = 0x81
/** Up to this size the second byte of the header is the size; up to 65,535 the next two bytes are, above that the next eight. */
const MAX_SHORT = 125
const MAX_TWO_BYTES = 0xffff
const TWO_BYTES = 126
const EIGHT_BYTES = 127

/**
 * One unmasked frame with a whole text message, which is what a server sends (RFC 6455 §5.2).
 * @param parts of the message in order: the prefix of a request, then what upstream said. They are copied
 */
export function frameOf(...parts: readonly Buffer[]): Buffer {
  return startOfFrame(0, ...parts)
}

/** The same without the last `restBytes` of the message, which must follow. */
export function startOfFrame(restBytes: number, ...parts: readonly Buffer[]): Buffer {
  let payload = 0
  for (const part of parts) payload += part.length
  let at = headerBytes(payload + restBytes)
  // See standaloneBuffer.
  const frame = Buffer.allocUnsafeSlow(at + payload)
  writeHeader(frame, payload + restBytes)
  for (const part of parts) {
    frame.set(part, at)
    at += part.length
  }
  return frame
}

/** The size of the message in a frame, or of its part in the start of one. */
export function messageBytes(frame: Buffer): number {
  const size = frame[1] ?? 0
  if (size <= MAX_SHORT) return frame.length - 2
  return frame.length - (size === TWO_BYTES ? 4 : 10)
}

/**
 * The text as UTF-8, in memory of its own. Node.js cuts small buffers from a shared pool of 64 KiB, which stays in memory as long
 * as any buffer in it. So text that is kept, or may wait for a slow browser, must not come from that pool.
 */
export function standaloneBuffer(text: string): Buffer {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text))
  bytes.write(text)
  return bytes
}

/** Like Buffer.concat, in memory of its own (see {@link standaloneBuffer}). */
export function standaloneConcat(parts: readonly Buffer[]): Buffer {
  let size = 0
  for (const part of parts) size += part.length
  const whole = Buffer.allocUnsafeSlow(size)
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}

function headerBytes(payload: number): number {
  if (payload <= MAX_SHORT) return 2
  return payload <= MAX_TWO_BYTES ? 4 : 10
}

function writeHeader(frame: Buffer, payload: number): void {
  frame[0] = FIN_TEXT
  if (payload <= MAX_SHORT) frame[1] = payload
  else if (payload <= MAX_TWO_BYTES) {
    frame[1] = TWO_BYTES
    frame.writeUInt16BE(payload, 2)
  } else {
    frame[1] = EIGHT_BYTES
    frame.writeBigUInt64BE(BigInt(payload), 2)
  }
}
