import type { Message } from '../../../client/dist/client.js'
import type { SocketPeer } from './socket-peer.ts'

/** What a trading service that streams each symbol once a connection holds. */
export interface SymbolsOnce {
  /** The open streams: the number of their connection and their symbol, such as `2 R_1`, in order. */
  readonly open: () => readonly string[]
  /** Sends a price on every stream. */
  readonly tick: (price: number) => void
}

/**
 * Makes a peer answer as services of this family do: a connection streams a symbol once, whatever request names it, and
 * the second one is `AlreadySubscribed`.
 */
export function symbolsOnce(world: SocketPeer): SymbolsOnce {
  const streams = new Map<string, { on: number; symbol: string; send: (body: Message) => void }>()
  let issued = 0
  world.onSocket = (socket) => {
    const on = world.sockets.length
    socket.on('close', () => {
      for (const [id, stream] of streams) if (stream.on === on) streams.delete(id)
    })
  }
  world.reply = (message, send, on) => {
    if ('forget' in message) return send({ forget: Number(streams.delete(String(message['forget']))) })
    if (message['subscribe'] !== 1) return send({ ok: true })
    const symbol = String(message['ticks'] ?? message['ticks_history'])
    if ([...streams.values()].some((stream) => stream.on === on && stream.symbol === symbol)) {
      return send({ error: { code: 'AlreadySubscribed', message: `You are already subscribed to ${symbol}` } })
    }
    const id = `stream-${++issued}`
    const subscription = { id }
    streams.set(id, { on, symbol, send: (body) => send({ subscription, ...body }) })
    send({ subscription, ...('ticks' in message ? { tick: 0 } : { history: [] }) })
  }
  return {
    open: () => [...streams.values()].map(({ on, symbol }) => `${on} ${symbol}`).toSorted((a, b) => a.localeCompare(b)),
    tick: (price) => {
      for (const { send } of streams.values()) send({ tick: price })
    },
  }
}
