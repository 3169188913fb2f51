/** How long a peer may take to read what waits for it and to answer a close frame, before it is cut off. */
const CLOSE_MS = 10_000

/**
 * A half-received message may be in so many fragments, and a half-received frame in so many pieces as its size divided by
 * this; each costs some 250 bytes here, however short it is. Sensible peers are far from it, and Autobahn's 65,536
 * fragments of 64 bytes pass where 16 MiB are allowed.
 */
const BYTES_PER_PIECE = 256
const MIN_PIECES = 64

/** Bounds of the messages from one side, by their greatest size. */
export function messageLimits(maxBytes: number) {
  const pieces = Math.max(MIN_PIECES, Math.ceil(maxBytes / BYTES_PER_PIECE))
  return { maxPayload: maxBytes, maxFragments: pieces, maxBufferedChunks: pieces }
}

/** What holds for both sockets of a relay. */
export const SOCKET_OPTIONS = {
  // Costs more memory and time than it saves, and frames would no longer pass as they came.
  perMessageDeflate: false,
  skipUTF8Validation: false,
  // See Side: ws would cut a peer off that pings while it is slow to read.
  autoPong: false,
  closeTimeout: CLOSE_MS,
}
