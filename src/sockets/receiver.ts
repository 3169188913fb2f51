import type { EventEmitter } from 'node:events'
import type { WebSocket } from 'ws'

/**
 * What ws knows of a connection and does not tell: this file alone looks into it, and tests of half-received messages and
 * of late closes notice when another version keeps it elsewhere.
 */
type Receiver = EventEmitter & {
  /** Pieces of a message whose last one has not come. */
  readonly _fragments: readonly Buffer[]
}

/** Whether the socket's peer is in the middle of a message. */
export function isMidMessage(socket: WebSocket): boolean {
  // oxlint-disable-next-line no-underscore-dangle -- ws has no other name for it
  return receiverOf(socket)._fragments.length > 0
}

/**
 * Tells of a peer's close as soon as its close frame has come; without one, when its connection has ended. The event of
 * ws waits for the end of the connection in any case, which a peer may put off for as long as it is let.
 */
export function onPeerClose(socket: WebSocket, closed: (code: number, reason: Buffer) => void): void {
  receiverOf(socket).once('conclude', closed)
  socket.on('close', closed)
}

function receiverOf(socket: WebSocket): Receiver {
  // oxlint-disable-next-line no-underscore-dangle -- ws has no other name for it
  return (socket as unknown as { readonly _receiver: Receiver })._receiver
}
