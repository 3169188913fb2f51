import { isIPv6, SocketAddress } from 'node:net'

/** One household or server: an IPv4 address, or the /64 of an IPv6 one, since a client has all of its /64. */
export function network(address: string | undefined): string {
  // A client that has hung up has no address any more.
  if (address === undefined) return 'gone'
  const [bare = ''] = address.split('%', 1)
  if (!isIPv6(bare)) return bare
  const canonical = new SocketAddress({ address: bare, family: 'ipv6' }).address
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(canonical)?.[1]
  return mapped ?? `${firstGroups(canonical).join(':')}::/64`
}

/** The first four of the eight groups of a canonical address; `::` stands for as many zeros as are missing. */
function firstGroups(address: string): string[] {
  const [head = '', tail] = address.split('::', 2)
  const front = head === '' ? [] : head.split(':')
  if (tail === undefined) return front.slice(0, 4)
  const back = tail === '' ? [] : tail.split(':')
  // A dotted quad at the end stands for two groups.
  const known = front.length + back.length + (tail.includes('.') ? 1 : 0)
  return [...front, ...Array<string>(8 - known).fill('0'), ...back].slice(0, 4)
}
