import { isIPv6, SocketAddress } from 'node:net'

/** An IPv4 address that a network translates between its IPv4 clients and this server (RFC 6052 §2.1). */
const TRANSLATED = /^64:ff9b::([\da-f]+:[\da-f]+)$/

/** How many times the limit of its smallest network a client has in each of {@link networks}. */
const FACTORS = [1, 4, 16] as const

/** The smallest network of a client: its IPv4 address, or the /64 of its IPv6 address, all of which one client controls. */
export function network(address: string | undefined): string {
  return networks(address)[0]
}

/**
 * The networks that one client may control, the smallest first: for an IPv6 address its /64 (a household or server), /56
 * and /48 (a site); for IPv4 just the address.
 */
export function networks(address: string | undefined): [smallest: string, ...larger: string[]] {
  // A closed connection no longer has an address.
  if (address === undefined) return ['gone']
  const [bare = ''] = address.split('%', 1)
  if (!isIPv6(bare)) return [bare]
  const canonical = canonicalOf(canonicalOf(bare).replace(TRANSLATED, '::ffff:$1'))
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(canonical)?.[1]
  if (mapped !== undefined) return [mapped]
  const [first = '', second = '', third = '', fourth = ''] = firstGroups(canonical)
  const site = `${first}:${second}:${third}`
  const upperByte = Number.parseInt(fourth, 16) & 0xff00
  return [`${site}:${fourth}::/64`, `${site}:${upperByte.toString(16)}::/56`, `${site}::/48`]
}

/** The limit of each network of a client. An IPv6 client can have as many addresses, and /64s, as it likes. @param limit of the smallest */
export function limitsOf(address: string | undefined, limit: number): (readonly [network: string, limit: number])[] {
  return networks(address).map((name, index) => [name, limit * (FACTORS[index] ?? 1)])
}

function canonicalOf(address: string): string {
  return new SocketAddress({ address, family: 'ipv6' }).address
}

/**
 * The first four of the eight groups of a canonical address, in which `::` stands for all missing zeros. A dotted quad only
 * follows zeros.
 */
function firstGroups(address: string): string[] {
  const [front = [], back = []] = address.split('::').map((half) => half.match(/[^:]+/g) ?? [])
  const zeros = Array<string>(8 - front.length - back.length).fill('0')
  return [...front, ...zeros, ...back].slice(0, 4)
}
