import { Actor } from './actor.ts'
import type { Order } from './load/pump.ts'

/** The process that runs bench/load/pump.ts. It replies to each order with a count. */
export type Pump = Actor<Order, number>

export function startPump(name: string): Pump {
  return new Actor(name, 'pump.ts')
}

/** Opens a relay for each request and waits until all have reached upstream. */
export async function openRelays(
  { browsers, upstream }: Record<'browsers' | 'upstream', Pump>,
  port: number,
  requests: readonly string[],
): Promise<void> {
  await browsers.order({ do: 'open', port, requests })
  await upstream.order({ do: 'await', sockets: requests.length })
}

/** Closes all relays at both ends without close frames. */
export async function closeRelays({ browsers, upstream }: Record<'browsers' | 'upstream', Pump>): Promise<void> {
  for (const end of [browsers, upstream]) await end.order({ do: 'close' })
  for (const end of [browsers, upstream]) await end.order({ do: 'await', sockets: 0 })
}

/** A browser's handshake as a TLS proxy forwards it. */
function handshake(path: string, origin: string, address: string, cookie?: string): string {
  const lines = [
    `GET ${path} HTTP/1.1`,
    'Host: localhost',
    'Connection: Upgrade',
    'Upgrade: websocket',
    `Origin: ${origin}`,
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    `X-Forwarded-For: ${address}`,
    'X-Forwarded-Proto: https',
    ...(cookie === undefined ? [] : [`Cookie: ${cookie}`]),
  ]
  return `${lines.join('\r\n')}\r\n\r\n`
}

/** Handshakes of several browsers, of which each address has 20 at most. @param cookies are used in turn */
export function handshakes(count: number, path: string, origin: string, cookies: readonly string[] = []): string[] {
  const PER_ADDRESS = 20
  return Array.from({ length: count }, (_, index) => {
    const address = Math.floor(index / PER_ADDRESS)
    const from = `203.0.${Math.floor(address / 250)}.${1 + (address % 250)}`
    return handshake(path, origin, from, cookies[index % cookies.length])
  })
}
