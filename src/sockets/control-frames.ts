import type { Peer } from './peer.ts'

/**
 * Answers the pings of a peer and notes its pongs.
 * @param tooMany called when control frames pile up in the middle of a message (see {@link Peer.receivedControl}). Whoever is
 *   called ends the socket; the connection is hung up afterwards, since reading on would let the unfinished message grow
 * @param isOver whether the socket has ended, so that nothing of this matters
 */
export function listenToControl(peer: Peer, isOver: () => boolean, tooMany: () => void): void {
  const received = (data: Buffer): void => {
    if (isOver() || peer.receivedControl(data)) return
    tooMany()
    peer.hangUp()
  }
  peer.socket.on('pong', received)
  peer.socket.on('ping', (data: Buffer) => {
    received(data)
    peer.pong(data)
  })
}
