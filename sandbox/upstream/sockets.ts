import type { IncomingMessage, Server } from 'node:http'
import type { Duplex } from 'node:stream'
import { WebSocketServer } from 'ws'
import { Connection, type ConnectionKind } from './connection.ts'
import { dispatch } from './dispatch.ts'
import type { World } from './world.ts'

const PATH = /^\/trading\/v1\/options\/ws\/(public|demo|real)$/
const MAX_MESSAGE_BYTES = 1024 * 1024

/** The WebSocket surface (docs/upstream.md, Sockets). */
export class Sockets {
  readonly #world: World
  readonly #open = new Set<Connection>()
  readonly #server = new WebSocketServer({
    noServer: true,
    perMessageDeflate: false,
    maxPayload: MAX_MESSAGE_BYTES,
  })

  constructor(world: World) {
    this.#world = world
  }

  attach(server: Server): void {
    server.on('upgrade', (request, socket, head) => this.#upgrade(request, socket, head))
  }

  /** How many connections of each kind are open. */
  count(): Record<ConnectionKind, number> {
    const counts = { public: 0, demo: 0, real: 0 }
    for (const { kind } of this.#open) counts[kind] += 1
    return counts
  }

  /** Drops every connection without a goodbye. */
  close(): void {
    for (const socket of this.#server.clients) socket.terminate()
  }

  /** The one-time password is the only credential, and it is looked at before there is a WebSocket. */
  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const url = URL.parse(`http://sandbox${request.url ?? '/'}`)
    const kind = PATH.exec(url?.pathname ?? '')?.[1] as ConnectionKind | undefined
    if (!url || !kind) return refuse(socket, '404 Not Found')
    const account =
      kind === 'public' ? undefined : this.#world.oneTimePasswords.redeem(url.searchParams.get('otp') ?? '')
    if (kind !== 'public' && account?.type !== kind) return refuse(socket, '401 Unauthorized')
    this.#server.handleUpgrade(request, socket, head, (webSocket) => {
      const connection = new Connection(webSocket, kind, this.#world, account)
      this.#open.add(connection)
      webSocket.on('close', () => this.#open.delete(connection))
      connection.serve(dispatch)
    })
  }
}

function refuse(socket: Duplex, status: string): void {
  socket.on('error', () => socket.destroy())
  // Destroyed, not only ended: a client that keeps its half open would hold up close().
  socket.on('finish', () => socket.destroy())
  socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`)
}
