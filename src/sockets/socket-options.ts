/** How long a peer may take to read what waits for it and to answer a close frame. */
const CLOSE_MS = 10_000

/**
 * An unfinished message may have one fragment, and an unfinished frame one chunk, per this many bytes of the largest message.
 * Every piece costs about 250 bytes of memory, however short it is. Ordinary peers stay far below; even 65,536 fragments of
 * 64 bytes pass where MAX_MESSAGE_BYTES is 16 MiB.
 */
const BYTES_PER_PIECE = 256
const MIN_PIECES = 64

/** The options of ws for every socket, to browsers and to upstream. @param maxBytes of one message of the peer */
export function socketOptions(maxBytes: number) {
  const pieces = Math.max(MIN_PIECES, Math.ceil(maxBytes / BYTES_PER_PIECE))
  return {
    maxPayload: maxBytes,
    maxFragments: pieces,
    maxBufferedChunks: pieces,
    // Compression costs more memory and time than it saves, and a frame could no longer be sent on as it was received.
    perMessageDeflate: false,
    skipUTF8Validation: false,
    // The end of the socket sends the pongs: ws would queue 60 for the pings of a peer that is slow to read, and then cut it off.
    autoPong: false,
    closeTimeout: CLOSE_MS,
  }
}
