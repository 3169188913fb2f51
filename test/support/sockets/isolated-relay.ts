import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import type { Test } from 'tap'
import { WebSocket, WebSocketServer, type ClientOptions } from 'ws'
import { createMetrics } from '../../../src/telemetry/metrics.ts'
import type { CloseStatus } from '../../../src/sockets/close-codes.ts'
import { nextEvent, until } from '../time/until.ts'
import type { OrderGate } from '../../../src/sockets/relay/order-gate.ts'
import type { RelayUser } from '../../../src/sockets/relay/relay-user.ts'
import { Relay } from '../../../src/sockets/relay/relay.ts'
import type { OpenSocket } from '../../../src/sockets/socket-end.ts'
import { socketOptions } from '../../../src/sockets/socket-options.ts'

/** Bytes of each message of {@link flood}. */
export const MESSAGE = 16_384
/** More messages than fit into the kernel buffers of a relay. */
export const MANY = 2500

const STALLED_MS = 200

/** Sends {@link MANY} numbered messages. */
export function flood(socket: WebSocket): void {
  for (let index = 0; index < MANY; index++) {
    const message = Buffer.alloc(MESSAGE, index)
    message.writeUInt32BE(index)
    socket.send(message)
  }
}

/** Whether these are the messages of {@link flood}, from the first one on. */
export function inOrder(messages: readonly Buffer[]): boolean {
  return messages.every((data, index) => data.length === MESSAGE && data.readUInt32BE() === index)
}

/** Resolves with the bytes that the sender still holds once they have stayed the same for 200 ms. */
export async function stalled(sender: WebSocket): Promise<number> {
  let before = -1
  let changedAt = 0
  await until(() => {
    const now = performance.now()
    if (sender.bufferedAmount !== before) changedAt = now
    before = sender.bufferedAmount
    return now - changedAt >= STALLED_MS
  }, 'the sender is kept from sending')
  return before
}

/** A relay without a server between two real sockets, with a heartbeat of 100 ms. */
export async function isolatedRelay(
  t: Test,
  limits: Partial<ConstructorParameters<typeof Relay>[2]['limits']> = {},
  gate?: OrderGate,
  user?: RelayUser,
): Promise<{
  browser: WebSocket
  upstream: WebSocket
  /** The TCP connection of `upstream`. */
  upstreamWire: Socket
  /** That of `browser`. */
  browserWire: Socket
  /** The same two at the relay. */
  ourWire: Socket
  ourBrowserWire: Socket
  relay: Relay
  ended: Promise<CloseStatus | undefined>
}> {
  const servers = [0, 1].map(() => new WebSocketServer({ port: 0, host: '127.0.0.1', perMessageDeflate: false }))
  t.teardown(() => {
    for (const server of servers) {
      for (const client of server.clients) client.terminate()
      server.close()
    }
  })
  const [browsers, upstreams] = servers
  if (browsers === undefined || upstreams === undefined) throw new Error('two servers')
  const connectTo = async (server: WebSocketServer, options: ClientOptions): Promise<[OpenSocket, OpenSocket]> => {
    if (server.address() === null) await once(server, 'listening')
    const accepted = nextEvent(server, 'connection')
    const url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}`
    const client = new WebSocket(url, options)
    const upgraded = nextEvent(client, 'upgrade')
    await nextEvent(client, 'open')
    const [socket, request] = (await accepted) as [WebSocket, IncomingMessage]
    const [response] = (await upgraded) as [IncomingMessage]
    t.teardown(() => client.terminate())
    return [
      { socket: client, wire: response.socket },
      { socket, wire: request.socket },
    ]
  }
  const [{ socket: browser, wire: browserWire }, ourBrowser] = await connectTo(browsers, { perMessageDeflate: false })
  const [ourUpstream, { socket: upstream, wire: upstreamWire }] = await connectTo(
    upstreams,
    socketOptions(MANY * MESSAGE),
  )
  ourUpstream.socket.pause()
  let relay: Relay | undefined
  const ended = new Promise<CloseStatus | undefined>((resolve) => {
    relay = new Relay(ourBrowser, ourUpstream, {
      limits: { maxBufferedBytes: 200_000, slowConsumerMs: 3_600_000, heartbeatMs: 100, ...limits },
      metrics: createMetrics(),
      gate,
      user,
      onEnd: resolve,
    })
  })
  if (relay === undefined) throw new Error('no relay')
  const wires = { browserWire, upstreamWire, ourWire: ourUpstream.wire, ourBrowserWire: ourBrowser.wire }
  return { browser, upstream, ...wires, relay, ended }
}
