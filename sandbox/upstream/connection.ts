import type { RawData, WebSocket } from 'ws'
import type { Account } from './accounts.ts'
import type { ContractIds } from './contract-ids.ts'
import { RequestCounts } from './limits.ts'
import { Refusal } from './refusal.ts'
import { STREAM_TYPES, Subscriptions } from './subscriptions.ts'
import type { Terms } from './terms.ts'
import type { World } from './world.ts'

export type ConnectionKind = 'public' | 'demo' | 'real'

/** A parsed request, one of whose keys is the name of an operation. */
export type Message = Record<string, unknown>

/** Executes the operation of a message. */
export type Dispatch = (message: Message, connection: Connection) => void

/** The real service closes connections that are silent for about this long. */
const IDLE_MS = 120_000

/** A client's WebSocket with its streams: reads requests and sends responses. */
export class Connection {
  readonly kind: ConnectionKind
  readonly world: World
  /** Undefined on the public socket. */
  readonly account: Account | undefined
  readonly subscriptions: Subscriptions
  readonly requests: RequestCounts
  /** The proposals of this connection by id, until they are bought. */
  readonly proposals = new Map<string, Terms>()
  readonly #socket: WebSocket

  constructor(socket: WebSocket, kind: ConnectionKind, world: World, account: Account | undefined) {
    this.#socket = socket
    this.kind = kind
    this.world = world
    this.account = account
    this.subscriptions = new Subscriptions(world.limits.subscriptions)
    this.requests = new RequestCounts(world.limits.requests)
  }

  /** Responds to requests until the connection closes. */
  serve(dispatch: Dispatch): void {
    const idle = setTimeout(() => this.#socket.close(1000, 'idle'), IDLE_MS)
    this.#socket.on('message', (data) => {
      idle.refresh()
      this.#receive(data, dispatch)
    })
    this.#socket.on('error', () => this.#socket.terminate())
    this.#socket.on('close', () => {
      clearTimeout(idle)
      this.subscriptions.forgetAll(STREAM_TYPES)
    })
  }

  /** Sends a response, or a message of a stream, with the data that assigns it to its request. */
  respond(request: Message, type: string, body: Message, subscriptionId?: string): void {
    const { req_id: requestId, passthrough } = request
    this.#send({
      echo_req: request,
      msg_type: type,
      ...body,
      ...(subscriptionId !== undefined && { subscription: { id: subscriptionId } }),
      ...(requestId !== undefined && { req_id: requestId }),
      ...(passthrough !== undefined && { passthrough }),
    })
  }

  /** Sends an error response. */
  refuse(request: Message, type: string, { code, message, details }: Refusal): void {
    this.respond(request, type, { error: { code, message, ...(details && { details }) } })
  }

  #receive(data: RawData, dispatch: Dispatch): void {
    const message = parse(data, this.world.ids)
    if (message) dispatch(message, this)
    else this.refuse({}, 'error', new Refusal('BadRequest', 'The message is not a JSON object.'))
  }

  #send(message: Message): void {
    if (this.#socket.readyState === this.#socket.OPEN) this.#socket.send(this.world.ids.write(JSON.stringify(message)))
  }
}

function parse(data: RawData, ids: ContractIds): Message | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.isBuffer(data) ? ids.read(data.toString()) : '')
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Message) : undefined
  } catch {
    return undefined
  }
}
