import { BlockList, isIP } from 'node:net'

/** Removes the brackets that a URL puts around an IPv6 address, since sockets take it without them. */
export function withoutBrackets(hostname: string): string {
  return hostname.replace(/^\[(.*)\]$/, '$1')
}

/** Whether the hostname of a URL refers to this machine (RFC 6761 §6.3, RFC 1122 §3.2.1.3). */
export function isLoopbackHost(hostname: string): boolean {
  const name = hostname.toLowerCase()
  return (
    name === 'localhost' ||
    name.endsWith('.localhost') ||
    name === '[::1]' ||
    (isIP(name) === 4 && name.startsWith('127.'))
  )
}

/**
 * Whether a listener can be bound to this host: an address in its usual form, or a name. Systems also take numbers, such as
 * 0 or 0x0 for 0.0.0.0, but they would hide which address is meant.
 */
export function isBindable(host: string): boolean {
  return isIP(host) !== 0 || (/^[\w.-]+$/.test(host) && !/(^|\.)(\d+|0x[\da-f]+)$/i.test(host))
}

/** Ranges that are not routed over the internet (RFC 1918, RFC 6598, RFC 4193, RFC 3927, RFC 4291 §2.5.6). */
const INNER = new BlockList()
for (const [network, bits] of [
  ['127.0.0.0', 8],
  ['10.0.0.0', 8],
  ['172.16.0.0', 12],
  ['192.168.0.0', 16],
  ['100.64.0.0', 10],
  ['169.254.0.0', 16],
] as const) {
  INNER.addSubnet(network, bits, 'ipv4')
}
INNER.addAddress('::1', 'ipv6')
INNER.addSubnet('fc00::', 7, 'ipv6')
INNER.addSubnet('fe80::', 10, 'ipv6')

/** Whether a listener on this address can be reached from other networks. The address of a name is not known here. */
export function isPublicHost(host: string): boolean {
  const version = isIP(host)
  return version !== 0 && !INNER.check(host, version === 4 ? 'ipv4' : 'ipv6')
}

/** Whether the hostname of a URL refers to this machine, or is an address of its network. */
export function isNearHost(hostname = ''): boolean {
  const host = withoutBrackets(hostname)
  return isLoopbackHost(hostname) || (isIP(host) !== 0 && !isPublicHost(host))
}
