import { once } from 'node:events'
import type { Test } from 'tap'
import { WebSocketServer, type WebSocket } from 'ws'
import { createClient, type Client, type Message, type ServerOptions } from '../../../client/dist/client.js'

/** A server whose sockets a test handles itself, and a client of it. */
export interface SocketPeer {
  readonly client: Client
  /** Every message except pings. */
  readonly seen: (Message & { readonly on: number })[]
  readonly sockets: WebSocket[]
  /** Called for every connection. */
  onSocket: (socket: WebSocket) => unknown
  /** Replies to a message on the connection with this number, from 1; by default with `ok`. */
  reply: (message: Message, send: (body: Message | string) => void, on: number) => void
}

/** Starts a server on a free port. It ends with the test. */
export async function socketPeer(t: Test, options: ServerOptions = {}): Promise<SocketPeer> {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  await once(server, 'listening')
  const baseUrl = `http://127.0.0.1:${(server.address() as { port: number }).port}`
  const client = createClient({ baseUrl, ...options })
  t.teardown(() => {
    client.close()
    for (const socket of server.clients) socket.terminate()
    server.close()
  })
  const world: SocketPeer = {
    client,
    seen: [],
    sockets: [],
    onSocket: () => undefined,
    reply: (_message, send) => send({ ok: true }),
  }
  server.on('connection', (socket) => {
    const on = world.sockets.push(socket)
    world.onSocket(socket)
    socket.on('message', (data: Buffer) => {
      const message = JSON.parse(data.toString()) as Message
      const send = (body: Message | string): void =>
        socket.send(typeof body === 'string' ? body : JSON.stringify({ req_id: message['req_id'], ...body }))
      if ('ping' in message) return send({ ping: 'pong' })
      world.seen.push({ ...message, on })
      world.reply(message, send, on)
    })
  })
  return world
}
