/** How long a peer may take to read what waits for it and to answer a close frame, before it is cut off. */
const CLOSE_MS = 10_000

/** What holds for both sockets of a relay. */
export const SOCKET_OPTIONS = {
  // Costs more memory and time than it saves, and frames would no longer pass as they came.
  perMessageDeflate: false,
  skipUTF8Validation: false,
  // See Side: ws would cut a peer off that pings while it is slow to read.
  autoPong: false,
  closeTimeout: CLOSE_MS,
}
