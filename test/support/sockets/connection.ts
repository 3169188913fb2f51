import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Test } from 'tap'
import { WebSocket, WebSocketServer } from 'ws'
import { frame } from './raw-frames.ts'
import { nextEvent } from '../time/until.ts'

/** A payload as a connection reads it: after its frame header and before other bytes. */
export function asRead(opcode: number, bytes: number, fin = true): { head: Buffer; payload: Buffer } {
  const whole = frame({ opcode, payload: Buffer.alloc(bytes, 'x'), masked: false, fin })
  const read = new Uint8Array(3 + whole.length + 5)
  read.set(whole, 3)
  const head = whole.length - bytes
  return { head: whole.subarray(0, head), payload: Buffer.from(read.buffer, 3 + head, bytes) }
}

/** An open socket, and the client at its other end. */
export async function connection(t: Test): Promise<{ socket: WebSocket; wire: Socket; client: WebSocket }> {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', autoPong: false })
  t.teardown(() => void server.close())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const client = new WebSocket(`ws://127.0.0.1:${port}`)
  t.teardown(() => client.terminate())
  // A client that is ended before it is open reports an error, to whichever test runs then.
  const opened = nextEvent(client, 'open')
  const [socket, { socket: wire }] = (await nextEvent(server, 'connection')) as [WebSocket, IncomingMessage]
  await opened
  return { socket, wire, client }
}
