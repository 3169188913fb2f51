import { WebSocket } from 'ws'
import { nextEvent, within } from '../time/until.ts'

type Message = Record<string, unknown>

/** A client of the sandbox's WebSocket API: it sends requests and reads streams. Messages wait until they are read. */
export class MessageSocket {
  readonly socket: WebSocket
  readonly #waiting: { wanted: (message: Message) => boolean; take: (message: Message) => void }[] = []
  #unread: Message[] = []
  #nextId = 1

  private constructor(socket: WebSocket) {
    this.socket = socket
    socket.on('message', (data: Buffer) => this.#receive(JSON.parse(data.toString()) as Message))
  }

  /** @param origin the origin of the page that a browser would name */
  static async connect(url: string, origin?: string): Promise<MessageSocket> {
    const socket = new WebSocket(url, { origin })
    // Listens before the socket opens, so that no message is missed.
    const line = new MessageSocket(socket)
    await nextEvent(socket, 'open')
    return line
  }

  /** Sends a request, and returns the first response. */
  async ask(request: Message): Promise<Message> {
    const id = this.#nextId++
    this.socket.send(JSON.stringify({ ...request, req_id: id }))
    return this.#first((message) => message['req_id'] === id, `the response to ${JSON.stringify(request)}`)
  }

  /** Sends a request that is refused, and returns the code of its error. */
  async refusal(request: Message): Promise<unknown> {
    const { error } = await this.ask(request)
    return (error as Message | undefined)?.['code']
  }

  /** The next unread message of a type. */
  async next(type: string): Promise<Message> {
    return this.#first((message) => message['msg_type'] === type, `a message of type ${type}`)
  }

  #first(wanted: (message: Message) => boolean, what: string): Promise<Message> {
    const unread = this.#unread.find(wanted)
    if (!unread) {
      const next = new Promise<Message>((take) => void this.#waiting.push({ wanted, take }))
      return within(next, what)
    }
    this.#unread = this.#unread.filter((message) => message !== unread)
    return Promise.resolve(unread)
  }

  #receive(message: Message): void {
    const index = this.#waiting.findIndex(({ wanted }) => wanted(message))
    if (index === -1) this.#unread.push(message)
    else this.#waiting.splice(index, 1)[0]?.take(message)
  }
}
