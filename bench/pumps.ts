import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { Answer, Order } from './load/pump.ts'
import { Program } from './program.ts'

/** One end of many WebSockets, in a process of its own. */
export class Pump {
  readonly program: Program

  constructor(name: string) {
    const file = fileURLToPath(new URL('load/pump.ts', import.meta.url))
    this.program = new Program(name, process.execPath, [file], { ipc: true, on: 'others' })
  }

  /** Gives an order. @returns what it came to, see {@link Answer} @throws Error when the process ends over it */
  async order(order: Order): Promise<number> {
    const { child } = this.program
    const settled = new AbortController()
    const { signal } = settled
    const ended = async (): Promise<never> => {
      await once(child, 'exit', { signal })
      throw new Error(`${this.program.name} ended: ${this.program.lastWords()}`)
    }
    child.send(order)
    const answer = await Promise.race([once(child, 'message', { signal }), ended()])
    settled.abort()
    const [{ count }] = answer as [Answer]
    return count
  }
}

/** Opens so many relays of a contender, all the way. */
export async function openRelays(
  { browsers, upstream }: Record<'browsers' | 'upstream', Pump>,
  port: number,
  requests: readonly string[],
): Promise<void> {
  await browsers.order({ do: 'open', port, requests })
  await upstream.order({ do: 'await', sockets: requests.length })
}

/** Closes all relays, at both ends: neither waits for the other's close frame. */
export async function closeRelays({
  browsers,
  upstream,
}: Record<'browsers' | 'upstream', Pump>): Promise<void> {
  for (const end of [browsers, upstream]) await end.order({ do: 'close' })
  for (const end of [browsers, upstream]) await end.order({ do: 'await', sockets: 0 })
}

/** A browser's handshake, through a TLS proxy in front that names the client's address. */
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

/** The handshakes of so many browsers, a few of them behind each address. */
export function handshakes(count: number, path: string, origin: string): string[] {
  const PER_ADDRESS = 20
  return Array.from({ length: count }, (_, index) => {
    const address = Math.floor(index / PER_ADDRESS)
    return handshake(path, origin, `203.0.${Math.floor(address / 250)}.${1 + (address % 250)}`)
  })
}
