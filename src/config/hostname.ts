import { isIP } from 'node:net'

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
