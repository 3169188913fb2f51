import { connect } from 'node:net'
import { nextEvent } from '../time/until.ts'

/** The whole response to a GET whose headers are sent unchanged, as latin1. The server is on this machine. */
export async function rawGet(address: string, headers: Readonly<Record<string, string>>): Promise<string> {
  const { host, port, pathname, search } = new URL(address)
  const socket = connect(Number(port), '127.0.0.1')
  const lines = Object.entries({ host, connection: 'close', ...headers }).map(([name, value]) => `${name}: ${value}`)
  socket.write(`GET ${pathname}${search} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`, 'latin1')
  let text = ''
  socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')))
  await nextEvent(socket, 'close')
  return text
}
