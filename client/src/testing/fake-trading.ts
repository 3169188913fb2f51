import type { AnswerTo, Message, Operation, Operations, StreamOperation } from '../core/client.ts'
import { parseJson } from '../core/base/json.ts'
import type { FakeSocket } from './fake-socket.ts'

/** A message of the page. Pings are left out. */
export interface FakeMessage {
  readonly message: Message
  /** The account of the trading socket; undefined for the public one. */
  readonly account: string | undefined
}

/** The body of a message to the page: its own members, or why the trading service refuses. */
export type FakeBody<O extends Operation> =
  | Partial<AnswerTo<{ readonly [K in O]: unknown }>>
  | { readonly error: { readonly code: string; readonly message: string } }

/** What the trading service answers, or a function that is asked each time. If it returns nothing, no reply arrives. */
export type FakeReply<Body> =
  | Body
  | ((message: Message, account: string | undefined) => Given<Body> | Promise<Given<Body>>)
// oxlint-disable-next-line typescript/no-invalid-void-type -- such as that of disconnect()
type Given<Body> = Body | undefined | void

/** Members of the request of a stream, of which its operation is one. */
export type StreamMembers<M> = [keyof M & StreamOperation] extends [never]
  ? never
  : M &
      Partial<Operations[keyof M & StreamOperation]['request']> & {
        readonly [K in Exclude<keyof M, Members<M>>]: never
      }
type Members<M> = keyof Operations[keyof M & StreamOperation]['request']

/** A request, and the stream that it may have begun. */
interface Stream {
  readonly id: string
  readonly socket: FakeSocket
  readonly message: Message
  /** The operation of the request. */
  readonly name: string
}

/** The `msg_type` of refusals, where it is not the name of the operation. */
const TYPES: Readonly<Record<string, string>> = { ticks: 'tick', ticks_history: 'history' }

/** The trading service behind the sockets: it replies as a test has told it to, and keeps streams until they are forgotten. */
export class FakeTrading {
  readonly messages: FakeMessage[] = []
  readonly #replies = new Map<string, FakeReply<object>>()
  readonly #streams = new Map<string, Stream>()
  #issued = 0

  reply(operation: string, reply: FakeReply<object>): void {
    this.#replies.set(operation, reply)
  }

  push(members: object, body: object): number {
    const wanted = Object.entries(members).map(([name, value]) => [name, JSON.stringify(value)] as const)
    const streams = [...this.#streams.values()].filter(({ message }) =>
      wanted.every(([name, value]) => JSON.stringify(message[name]) === value),
    )
    for (const stream of streams) this.#send(stream, body)
    return streams.length
  }

  /** Takes the messages of a connection. */
  accept(socket: FakeSocket): void {
    socket.onText = (text) => void this.#take(socket, parseJson(text) as Message)
  }

  /** Ends the streams of a connection that has closed. */
  left(socket: FakeSocket): void {
    for (const [id, stream] of this.#streams) if (stream.socket === socket) this.#streams.delete(id)
  }

  async #take(socket: FakeSocket, message: Message): Promise<void> {
    const names = Object.keys(message)
    const name = names.find((each) => this.#replies.has(each)) ?? names[0] ?? ''
    const once: Stream = { id: '', socket, message, name }
    if ('ping' in message) return this.#send(once, { ping: 'pong' })
    const { account } = socket
    this.messages.push({ message, account })
    if ('forget' in message)
      return this.#send(once, { forget: Number(this.#streams.delete(String(message['forget']))) })
    const isStream = message['subscribe'] === 1
    const stream = isStream ? { ...once, id: `stream-${++this.#issued}` } : once
    if (isStream) this.#streams.set(stream.id, stream)
    const reply = this.#replies.get(name)
    // A stream without a reply is silent until something is pushed.
    if (!reply && isStream) return
    const body = typeof reply === 'function' ? await reply(message, account) : (reply ?? noReply(name))
    if (!body) return
    if ('error' in body) this.#streams.delete(stream.id)
    this.#send(stream, body)
  }

  #send({ id, socket, message, name }: Stream, body: object): void {
    const { req_id, passthrough } = message
    const [first] = Object.keys(body)
    const msg_type = 'error' in body ? (TYPES[name] ?? name) : first
    const subscription = id === '' ? undefined : { id }
    socket.deliver({ echo_req: message, req_id, passthrough, msg_type, subscription, ...body })
  }
}

function noReply(operation: string): object {
  return { error: { code: 'NoReply', message: `the test has not called server.reply('${operation}', …)` } }
}
