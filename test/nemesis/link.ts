import { once } from 'node:events'
import { connect, createServer, type AddressInfo, type Socket } from 'node:net'
import type { Test } from 'tap'
import { requestIn, type SeenRequest } from './http.ts'

/** The direction of bytes: from who has opened the connection, or back. */
type Way = 'request' | 'reply'

/** What a fault does to a link. Several at a time add up. */
export interface Behaviour {
  /** Which connections, by the first request on them; all of them if it is left out. */
  readonly of?: (opening: string) => boolean
  /** Bytes of these directions wait. */
  readonly holds?: readonly Way[]
  /** What it holds waits in the kernel of the sender: a reset takes it back. */
  readonly isAtSender?: boolean
  /** Bytes arrive so much later (ms). */
  readonly slowMs?: number
  /** There are no connections: open ones break, new ones are closed at once. */
  readonly refuses?: boolean
  /** Breaks the connection before these bytes, after the first half of them, or after all. */
  readonly cuts?: (way: Way, bytes: Buffer, opening: string) => 'before' | 'within' | 'after' | undefined
  /** Passes other bytes on in place of these. */
  readonly rewrites?: (way: Way, bytes: Buffer) => Buffer
  /** Nothing more passes to the other end of a connection on which a reply has come: the network has forgotten it. */
  readonly forgets?: boolean
  /** The response to a request of HTTP that is not passed on, empty for none; undefined if it is passed on. */
  readonly answers?: (request: SeenRequest) => string | undefined
}

/** As many bytes a link takes from a connection that it holds, as the buffers of a network would: when they came is known. */
const MOST_HELD_BYTES = 65_536

/** One direction of a connection. */
interface Flow {
  readonly way: Way
  readonly from: Socket
  readonly to: Socket
  readonly waiting: { readonly bytes: Buffer; readonly at: number }[]
  /** When the first of the bytes that were last passed on had come. */
  sentAt: number | undefined
  readonly connection: Connection
}

/** What both directions share. */
interface Connection {
  /** The bytes of the request before the first of a reply. */
  opening: string
  isReplied: boolean
}

/** The network between two parts. Without a behaviour it passes everything on at once. */
export class Link {
  readonly port: number
  readonly name: string
  readonly #flows = new Set<Flow>()
  readonly #behaviours = new Set<Behaviour>()
  /** The requests of connections, by the port from which this has connected. */
  readonly #requests = new Map<number, Flow>()
  readonly #now: () => number

  private constructor(name: string, port: number, now: () => number) {
    this.name = name
    this.port = port
    this.#now = now
  }

  /**
   * Starts one on a free port. It ends with the test.
   * @param target returns the port where the next connection goes
   * @param now the clock of the observer
   */
  static async start(
    t: Test,
    name: string,
    target: () => number,
    options: { now: () => number; port?: number },
  ): Promise<Link> {
    const server = createServer((socket) => link.#join(socket, target))
    await once(server.listen(options.port ?? 0, '127.0.0.1'), 'listening')
    const link = new Link(name, (server.address() as AddressInfo).port, options.now)
    t.teardown(() => {
      server.close()
      link.#breakAll()
    })
    return link
  }

  /** Behaves so from now on. @returns ends that */
  add(behaviour: Behaviour): () => void {
    this.#behaviours.add(behaviour)
    if (behaviour.refuses === true) this.#breakAll()
    return () => {
      this.#behaviours.delete(behaviour)
      for (const flow of this.#flows) this.#pass(flow)
    }
  }

  /** When the bytes had come that were last passed on from this port; undefined if the connection was not this link's. */
  sentAt(port: number): number | undefined {
    return this.#requests.get(port)?.sentAt
  }

  #behavioursOf({ opening }: Connection): readonly Behaviour[] {
    return [...this.#behaviours].filter((each) => each.of?.(opening) ?? true)
  }

  #breakAll(): void {
    for (const { from } of this.#flows) from.destroy()
  }

  #join(near: Socket, target: () => number): void {
    if ([...this.#behaviours].some(({ refuses }) => refuses)) return void near.destroy()
    const connection: Connection = { opening: '', isReplied: false }
    const far = connect(target(), '127.0.0.1')
    for (const socket of [near, far]) socket.setNoDelay().on('error', () => undefined)
    for (const [from, to, way] of [
      [near, far, 'request'],
      [far, near, 'reply'],
    ] as const) {
      const flow: Flow = { way, from, to, waiting: [], sentAt: undefined, connection }
      this.#flows.add(flow)
      if (way === 'request') far.on('connect', () => this.#requests.set(far.localPort ?? 0, flow))
      from.on('data', (bytes: Buffer) => {
        flow.waiting.push({ bytes, at: this.#now() })
        connection.isReplied ||= way === 'reply'
        if (!connection.isReplied) connection.opening += bytes.toString('latin1')
        const slowMs = Math.max(0, ...this.#behavioursOf(connection).map((each) => each.slowMs ?? 0))
        if (slowMs === 0) this.#pass(flow)
        else setTimeout(() => this.#pass(flow), slowMs)
      })
      from.on('error', () => this.#takeBack(flow))
      from.on('close', () => this.#pass(flow))
    }
  }

  /** The sender has reset its connection. */
  #takeBack({ waiting, connection }: Flow): void {
    if (this.#behavioursOf(connection).some(({ isAtSender }) => isAtSender)) waiting.length = 0
  }

  /** Passes on what waits, if nothing holds it. */
  #pass(flow: Flow): void {
    const { way, from, to, waiting, connection } = flow
    const all = this.#behavioursOf(connection)
    if (all.some(({ holds }) => holds?.includes(way))) return holdBack(flow)
    from.resume()
    if (way === 'request' && connection.isReplied && all.some(({ forgets }) => forgets)) return void waiting.splice(0)
    if (way === 'request' && this.#answer(flow, all)) return
    flow.sentAt = waiting[0]?.at ?? flow.sentAt
    for (const { bytes } of waiting.splice(0)) {
      const cut = all.map(({ cuts }) => cuts?.(way, bytes, connection.opening)).find(Boolean)
      if (cut === undefined) to.write(all.reduce((passed, { rewrites }) => rewrites?.(way, passed) ?? passed, bytes))
      else return this.#cut(flow, bytes, cut)
    }
    if (!from.destroyed) return
    this.#flows.delete(flow)
    to.destroySoon()
  }

  /** Responds in place of the other end, if a behaviour does that. @returns whether there is nothing to pass on yet */
  #answer({ from, waiting }: Flow, all: readonly Behaviour[]): boolean {
    if (waiting.length === 0 || from.destroyed || !all.some(({ answers }) => answers)) return false
    const request = requestIn(Buffer.concat(waiting.map(({ bytes }) => bytes)))
    if (request === 'incomplete') return true
    const response = request && all.map(({ answers }) => answers?.(request)).find((each) => each !== undefined)
    if (response === undefined) return false
    waiting.length = 0
    from.write(response, 'latin1')
    return true
  }

  #cut({ from, to }: Flow, bytes: Buffer, at: 'before' | 'within' | 'after'): void {
    const passed = { before: 0, within: Math.ceil(bytes.length / 2), after: bytes.length }[at]
    to.end(bytes.subarray(0, passed), () => to.destroy())
    from.destroy()
  }
}

function holdBack({ from, waiting }: Flow): void {
  const held = waiting.reduce((sum, { bytes }) => sum + bytes.length, 0)
  if (held > MOST_HELD_BYTES) from.pause()
}
