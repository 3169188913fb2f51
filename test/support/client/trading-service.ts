import type { WebSocket } from 'ws'
import { parseJson } from '../../../client/src/core/base/json.ts'
import type { ScriptedUpstream } from '../upstream/scripted-upstream.ts'

type Message = Record<string, unknown>

/** A minimal trading service: it replies with the `req_id` of the request, and keeps streams until they are forgotten. */
export class TradingService {
  /** Every message except pings, with the number of its connection, from 1. */
  readonly seen: (Message & { readonly on: number })[] = []
  pings = 0
  connections = 0
  /** Sends nothing, as if the network were lost. */
  isMute = false
  /** Handle messages in place of the service, by operation. */
  readonly instead: Record<string, (message: Message, reply: (body: Message) => void, socket: WebSocket) => void> = {}
  readonly #streams = new Map<string, { socket: WebSocket; base: Message }>()
  #issued = 0

  constructor(upstream: ScriptedUpstream) {
    upstream.onSocket = (socket) => {
      const on = ++this.connections
      socket.on('message', (data: Buffer) => this.#handle(parseJson(data.toString()) as Message, socket, on))
      socket.on('close', () => {
        for (const [id, stream] of this.#streams) if (stream.socket === socket) this.#streams.delete(id)
      })
    }
  }

  /** The number of messages with this operation, on all connections or on one. */
  count(operation: string, on?: number): number {
    return this.seen.filter((message) => operation in message && (on === undefined || message.on === on)).length
  }

  /** The number of open streams. */
  get streams(): number {
    return this.#streams.size
  }

  /** Sends a price on every stream. */
  tick(quote: number): void {
    this.push({}, { tick: { quote } })
  }

  /** Sends a message on every stream whose request has these members. */
  push(members: Message, body: Message): void {
    for (const { socket, base } of this.#streams.values()) {
      const request = base['echo_req'] as Message
      const fits = Object.entries(members).every(([name, value]) => request[name] === value)
      if (fits) socket.send(JSON.stringify({ ...base, ...body }))
    }
  }

  #handle(message: Message, socket: WebSocket, on: number): void {
    if ('ping' in message) this.pings++
    else this.seen.push({ ...message, on })
    if (this.isMute) return
    const { req_id } = message
    const instead = Object.entries(this.instead).find(([operation]) => operation in message)?.[1]
    if (instead) return instead(message, (body) => socket.send(JSON.stringify({ req_id, ...body })), socket)
    const send = (body: Message): void => socket.send(JSON.stringify({ echo_req: message, req_id, ...body }))
    if ('ping' in message) send({ msg_type: 'ping', ping: 'pong' })
    else if ('forget' in message) {
      send({ msg_type: 'forget', forget: this.#streams.delete(String(message['forget'])) ? 1 : 0 })
    } else if (message['subscribe'] === 1) this.subscribe(message, socket, { tick: { quote: 0 } })
    else send({ msg_type: 'other', ok: true })
  }

  /** Starts a stream, whose first message has this body, unless there is an equal one on the connection. */
  subscribe(message: Message, socket: WebSocket, first: Message): void {
    const send = (body: Message): void => socket.send(JSON.stringify({ req_id: message['req_id'], ...body }))
    const equal = [...this.#streams.values()].some(
      ({ socket: other, base }) => other === socket && (base['echo_req'] as Message)['ticks'] === message['ticks'],
    )
    if (equal) return send({ error: { code: 'AlreadySubscribed', message: 'You are already subscribed.' } })
    const id = `stream-${++this.#issued}`
    const base = { echo_req: message, req_id: message['req_id'], msg_type: 'tick', subscription: { id } }
    this.#streams.set(id, { socket, base })
    send({ ...base, ...first })
  }
}
