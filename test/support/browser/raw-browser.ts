import { connect, type Socket } from 'node:net'
import { nextEvent } from '../time/until.ts'

/** Where a raw browser connects, and what it sends along. */
export interface RawHandshake {
  readonly port: number
  readonly publicUrl: string
  readonly path: string
  readonly cookie?: string
}

/** A browser's TCP connection after the handshake of a WebSocket. */
export async function rawBrowser({ port, publicUrl, path, cookie = '' }: RawHandshake): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true }).on('error', () => undefined)
  socket.write(
    `GET ${path} HTTP/1.1\r\nHost: localhost\r\nOrigin: ${publicUrl}\r\nCookie: ${cookie}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
  )
  const [head] = (await nextEvent(socket, 'data')) as [Buffer]
  if (!head.toString().startsWith('HTTP/1.1 101')) throw new Error(head.toString())
  return socket
}
