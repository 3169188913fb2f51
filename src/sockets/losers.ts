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

interface Holder<Open> {
  sockets: number
  bytes: number
  /** Its sockets that may lose, in the end with the most bytes last. */
  readonly large: { readonly socket: Open; readonly bytes: number }[]
}

type Holders<Open> = Readonly<Record<WaitingSocket['kind'], Map<string, Holder<Open>>>>

/**
 * Chooses the sockets that lose, the first one first, until `excess` bytes are free or none may lose. Each time it is the largest
 * socket of the holder with the most bytes for each of its open sockets: so one slow reader among many at an address, or among
 * the tabs of a user, counts for little, and one who is alone counts in full.
 */
export function losers<Open extends WaitingSocket>(open: Iterable<Open>, excess: number): Open[] {
  const holders = holdersOf(open)
  const lost: Open[] = []
  let left = excess
  for (const kind of KINDS) {
    const candidates = [...holders[kind].values()].filter(({ large }) => large.length > 0)
    for (const { large } of candidates) large.sort((one, other) => one.bytes - other.bytes)
    while (left > 0) {
      const holder = heaviest(candidates)
      const loser = holder?.large.pop()
      if (holder === undefined || loser === undefined) break
      holder.sockets--
      holder.bytes -= loser.bytes
      left -= loser.bytes
      lost.push(loser.socket)
    }
  }
  return lost
}

function holdersOf<Open extends WaitingSocket>(open: Iterable<Open>): Holders<Open> {
  const holders: Holders<Open> = { public: new Map(), session: new Map(), trading: new Map() }
  for (const socket of open) {
    const { kind, holder: name, waitingBytes: bytes } = socket
    let holder = holders[kind].get(name)
    if (holder === undefined) holders[kind].set(name, (holder = { sockets: 0, bytes: 0, large: [] }))
    holder.sockets++
    holder.bytes += bytes
    if (bytes >= MIN_BYTES) holder.large.push({ socket, bytes })
  }
  return holders
}

/** The holder with the most bytes for each of its sockets, among those of which one may lose. */
function heaviest<Open>(holders: readonly Holder<Open>[]): Holder<Open> | undefined {
  let found: Holder<Open> | undefined
  let most = 0
  for (const holder of holders) {
    const each = holder.bytes / holder.sockets
    if (holder.large.length === 0 || each <= most) continue
    most = each
    found = holder
  }
  return found
}
