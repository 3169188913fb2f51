import type { IncomingMessage, Server } from 'node:http'
import type { Duplex } from 'node:stream'
import { WebSocketServer } from 'ws'
import { Connection, type ConnectionKind } from './connection.ts'
import { dispatch } from './dispatch.ts'
import type { World } from './world.ts'

const PATH = /^\/trading\/v1\/options\/ws\/(public|demo|real)$/
const MAX_MESSAGE_BYTES = 1024 * 1024

/** The WebSocket API (docs/upstream.md, Sockets). */
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

  /** The number of open connections by kind. */
  count(): Record<ConnectionKind, number> {
    const counts = { public: 0, demo: 0, real: 0 }
    for (const { kind } of this.#open) counts[kind] += 1
    return counts
  }

  /** Terminates every connection without a close frame. */
  close(): void {
    for (const socket of this.#server.clients) socket.terminate()
  }

  /** Checks the one-time password, which is the only credential, before it accepts the handshake. */
  #upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const url = URL.parse(`http://sandbox${request.url ?? '/'}`)
    const kind = PATH.exec(url?.pathname ?? '')?.[1] as ConnectionKind | undefined
    if (!url || !kind) return refuse(socket, '404 Not Found')
    const otp = url.searchParams.get('otp') ?? undefined
    const account = kind === 'public' ? undefined : this.#world.oneTimePasswords.redeem(otp ?? '')
    if (kind !== 'public' && account?.type !== kind) return refuse(socket, '401 Unauthorized')
    this.#server.handleUpgrade(request, socket, head, (webSocket) => {
      const connection = new Connection(webSocket, kind, this.#world, account)
      this.#open.add(connection)
      webSocket.on('close', () => this.#open.delete(connection))
      const { watch } = this.#world
      const port = request.socket.remotePort ?? 0
      if (watch) webSocket.on('message', (data: Buffer) => watch.message(data.toString(), { otp, port }))
      connection.serve(dispatch)
    })
  }
}

function refuse(socket: Duplex, status: string): void {
  socket.on('error', () => socket.destroy())
  // Without destroy(), a client that keeps its half of the connection open would delay close().
  socket.on('finish', () => socket.destroy())
  socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`)
}
