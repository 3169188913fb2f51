import type { Caps } from './caps.ts'
import { after, CLOSE } from './close-codes.ts'
import type { Handshake } from './handshake.ts'

/**
 * Takes the permits of a public socket, which needs no login: of its address and of this process.
 * @returns false when the handshake is over, because there was none left
 */
export function acquirePublicPermits(handshake: Handshake, caps: Caps): boolean {
  const { ip } = handshake.request
  if (!caps.allowsHandshake(ip)) {
    handshake.end(after(CLOSE.rateLimited, 1000 * caps.handshakeSecondsLeft))
    return false
  }
  return (
    handshake.acquire(caps.acquireProcess()) &&
    handshake.acquire(caps.acquireUnreserved()) &&
    handshake.acquire(caps.acquireAddress(ip))
  )
}
