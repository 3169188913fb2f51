// Node.js cuts small buffers from blocks of 64 KiB, and a block stays in memory as long as any buffer in it. So what is kept, or
// may wait for a slow browser, has memory of its own: a few bytes would otherwise keep a block that had been filled by others.

/** The text as UTF-8. */
export function unpooledText(text: string): Buffer {
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text))
  bytes.write(text)
  return bytes
}

/** Like Buffer.concat. */
export function unpooledConcat(parts: readonly Buffer[]): Buffer {
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
