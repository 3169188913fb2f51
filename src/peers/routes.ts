import { createSocket } from 'node:dgram'
import type { LookupAddress } from 'node:dns'

/** Any will do: nothing is sent. */
const PORT = 9

const ignore = (): void => undefined

/**
 * Leaves out the addresses that this machine has no route to, such as those of IPv6 on a machine without it: with each address that
 * is to be tried, the others have less time. If no address has a route, all stay, so that connecting says why it fails.
 */
export async function routable(addresses: readonly LookupAddress[]): Promise<readonly LookupAddress[]> {
  if (addresses.length < 2) return addresses
  const found: LookupAddress[] = []
  for (const address of addresses) if (await hasRoute(address)) found.push(address)
  return found.length === 0 ? addresses : found
}

/** Connecting a UDP socket makes the kernel look for the route, and sends nothing. */
function hasRoute({ address, family }: LookupAddress): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createSocket(family === 6 ? 'udp6' : 'udp4')
    const end = (error?: Error): void => {
      socket.removeAllListeners().on('error', ignore).close()
      resolve(error === undefined)
    }
    socket.once('error', end)
    socket.connect(PORT, address, end)
  })
}
