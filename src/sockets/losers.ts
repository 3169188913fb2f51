import { MIN_BYTES } from './waiting-bytes.ts'

/** In this order sockets lose: strangers before users, and the page that only watches its session before the one that trades. */
const KINDS = ['public', 'session', 'trading'] as const

/** An open socket, as its waiting bytes are judged. */
interface WaitingSocket {
  readonly kind: (typeof KINDS)[number]
  /** Whose it is: a subject, else a session; of a public socket the network of its address. */
  readonly holder: string
  readonly waitingBytes: number
}

/** A socket that may lose, and the bytes that its holder has for each open socket once its larger ones are gone. */
interface Candidate<Open> {
  readonly socket: Open
  readonly bytesEach: number
}

/**
 * Chooses the sockets that lose, the first one first, until `excess` bytes are free or none may lose. Each time it is the largest
 * socket of the holder with the most bytes for each of its open sockets: so one slow reader among many at an address, or among
 * the tabs of a user, counts for little, and one who is alone counts in full.
 */
export function losers<Open extends WaitingSocket>(open: readonly Open[], excess: number): Open[] {
  const lost: Open[] = []
  let left = excess
  for (const kind of KINDS) {
    if (left <= 0) break
    const holders = Map.groupBy(open, (socket) => (socket.kind === kind ? socket.holder : undefined))
    holders.delete(undefined)
    // Whoever loses the largest socket has no more for each of the others than before. So this one sort chooses as weighing all
    // holders anew after each loss would, whose time would grow with the square of their number.
    const candidates = [...holders.values()].flatMap(candidatesOf)
    for (const { socket } of candidates.sort((one, other) => other.bytesEach - one.bytesEach)) {
      if (left <= 0) break
      left -= socket.waitingBytes
      lost.push(socket)
    }
  }
  return lost
}

/** @returns the sockets of a holder that may lose, the largest one first */
function candidatesOf<Open extends WaitingSocket>(sockets: readonly Open[]): Candidate<Open>[] {
  let bytes = sockets.reduce((sum, { waitingBytes }) => sum + waitingBytes, 0)
  return sockets
    .filter(({ waitingBytes }) => waitingBytes >= MIN_BYTES)
    .sort((one, other) => other.waitingBytes - one.waitingBytes)
    .map((socket, larger) => {
      const bytesEach = bytes / (sockets.length - larger)
      bytes -= socket.waitingBytes
      return { socket, bytesEach }
    })
}
