import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { createSecureContext, TLSSocket, type SecureContext } from 'node:tls'
import type { Test } from 'tap'
import { slotOf } from '../../../src/store/links/cluster-slots.ts'
import { firstCommand, isPush, replyEnd, type Command } from './resp.ts'

/** What may happen to a command. */
export type CommandFault =
  /** The connection breaks before Redis gets it. */
  | 'is lost'
  /** Redis executes it, and the connection breaks before the reply. */
  | 'gets no reply'
  /** The connection breaks after the reply. */
  | 'gets a last reply'
  /** Redis gets it later than any server waits, and then executes it. */
  | 'is executed late'
  /** The reply comes later than any server waits. */
  | 'gets a late reply'
  | Said
/**
 * It is not executed, and this is said instead: an error with which a real Redis refuses a command, or a number. `<slot>` is that
 * of its key, and `<other>` the address of another server.
 */
type Said = `${'-' | ':'}${string}`

/** What may happen to a connection when it is opened. */
export type ConnectionFault = 'is refused' | 'is reset' | 'is silent'

/** Which command is meant, by its words with spaces between them, and by the port of the server that gets it. */
type Meant = (text: string, port: number) => boolean

/** Longer than a server waits for a reply. */
const LATE_MS = 2600
/** Longer than a server waits before it connects again. */
const REFUSED_MS = 150

/** A command of which Redis has not replied yet. */
interface Sent {
  readonly fault?: CommandFault | undefined
  readonly suffered?: () => void
  /** Whether its reply has addresses. */
  readonly asksWho?: boolean
}

/** Where connections to a server are accepted. */
interface Door {
  readonly port: number
  readonly server: Server
}

/** The network between a server and its Redis, in which single commands suffer. The addresses that Redis names are those here. */
export class CommandProxy {
  /** How late each reply is (ms). */
  lateMs = 0
  /** By the ports of the servers behind them. */
  readonly #doors = new Map<number, Door>()
  /** Each with the first words of what was sent on it. */
  readonly #connections = new Map<Socket, Set<string>>()
  readonly #turns: { fault: CommandFault; meant: Meant; suffered: () => void }[] = []
  #opening: ConnectionFault[] = []
  readonly #silent: Socket[] = []
  #isDown = false
  readonly #secure: SecureContext | undefined

  private constructor(pemFile: string | undefined) {
    const pem = pemFile && readFileSync(pemFile)
    this.#secure = pem ? createSecureContext({ key: pem, cert: pem }) : undefined
  }

  /** Starts one, with a free port for each server. It ends with the test. @param pemFile with which it speaks TLS */
  static async start(
    t: Test,
    redis: { readonly port: number } | readonly { readonly port: number }[],
    pemFile?: string,
  ): Promise<CommandProxy> {
    const proxy = new CommandProxy(pemFile)
    for (const { port } of [redis].flat()) {
      const server = createServer((socket) => proxy.#accept(socket, port))
      await once(server.listen(0, '127.0.0.1'), 'listening')
      proxy.#doors.set(port, { port: (server.address() as AddressInfo).port, server })
    }
    t.teardown(() => {
      for (const { server } of proxy.#doors.values()) server.close()
      proxy.#breakAll()
    })
    return proxy
  }

  /** Where the first server is reached. */
  get url(): string {
    const [{ port } = { port: 0 }] = this.#doors.values()
    return `${this.#secure ? 'rediss' : 'redis'}://127.0.0.1:${port}`
  }

  /** While this is true, there are no connections. */
  set isDown(isDown: boolean) {
    this.#isDown = isDown
    if (isDown) this.#breakAll()
  }

  /**
   * Has the next command that is meant suffer, once all before it have. Resolves when it does: Redis has executed one that gets no
   * reply.
   */
  suffer(fault: CommandFault, meant: Meant): Promise<void> {
    return new Promise((suffered) => this.#turns.push({ fault, meant, suffered }))
  }

  /** Has the next connections suffer, one after the other. */
  open(faults: readonly ConnectionFault[]): void {
    this.#opening = [...faults]
  }

  /** Breaks the connections on which this was sent. @param word the first one of a command */
  breakThose(word: string): void {
    for (const [socket, words] of this.#connections) if (words.has(word)) socket.destroy()
  }

  /** Nothing suffers any more. */
  heal(): void {
    this.#turns.length = 0
    this.#opening = []
    for (const socket of this.#silent.splice(0)) socket.destroy()
  }

  #breakAll(): void {
    for (const socket of this.#connections.keys()) socket.destroy()
  }

  /** What happens to a command. */
  #turn({ words }: Command, port: number): Sent {
    const asksWho = words[0] === 'CLUSTER' || words[0] === 'SENTINEL'
    const [turn] = this.#turns
    if (turn?.meant(words.join(' '), port) !== true) return { asksWho }
    this.#turns.shift()
    if (turn.fault !== 'gets no reply') turn.suffered()
    const [, other = ''] = [...this.#doors].find(([known]) => known !== port) ?? []
    const slot = slotOf(words.find((word) => word.includes('bff:1:')) ?? '')
    const fault = turn.fault.replace('<slot>', String(slot)).replace('<other>', `127.0.0.1:${other && other.port}`)
    return { ...turn, fault: fault as CommandFault, asksWho }
  }

  /** A reply, with addresses of here in place of those of the servers. */
  #renamed(reply: Buffer, asksWho: boolean | undefined): Buffer {
    if (asksWho !== true && !/^-(MOVED|ASK) /.test(reply.toString('latin1', 0, 7))) return reply
    let text = reply.toString('latin1')
    for (const [port, door] of this.#doors) text = text.replaceAll(new RegExp(`\\b${port}\\b`, 'g'), String(door.port))
    return Buffer.from(text, 'latin1')
  }

  #accept(socket: Socket, port: number): void {
    if (this.#isDown) return void socket.destroy()
    const fault = this.#opening.shift()
    const door = this.#doors.get(port)
    if (fault === 'is reset') return void socket.resetAndDestroy()
    if (fault === 'is refused') {
      // It has been accepted. From now on none is.
      socket.resetAndDestroy()
      door?.server.close()
      setTimeout(() => door?.server.listen(door.port, '127.0.0.1'), REFUSED_MS)
      return
    }
    const words = new Set<string>()
    this.#connections.set(socket, words)
    socket.on('close', () => this.#connections.delete(socket)).on('error', () => undefined)
    if (fault === 'is silent') return void this.#silent.push(socket)
    const server = this.#secure ? new TLSSocket(socket, { isServer: true, secureContext: this.#secure }) : socket
    this.#join(server, port, words)
  }

  #join(server: Socket, port: number, words: Set<string>): void {
    const redis = connect(port, '127.0.0.1')
    const sent: Sent[] = []
    const waiting: (() => void)[] = []
    const late: Buffer[] = []
    const holds = new Set<'commands' | 'replies'>()
    let onIdle: (() => void) | undefined
    let [input, output] = [Buffer.alloc(0), Buffer.alloc(0)]
    const cut = (): void => {
      server.destroy()
      redis.destroy()
    }
    for (const socket of [server, redis]) {
      socket.setNoDelay().on('error', () => undefined)
      // What is on its way to Redis arrives even if nobody waits for the reply any more.
      socket.on('close', () => (socket === redis || holds.size === 0) && cut())
    }
    const pass = (command: Command, turn: Sent): void => {
      // They get pushes, and no reply.
      if (!command.words[0]?.endsWith('SUBSCRIBE')) sent.push(turn)
      redis.write(command.bytes)
    }
    const deliver = (bytes: Buffer): unknown => {
      if (holds.has('replies')) return late.push(bytes)
      if (this.lateMs > 0) return setTimeout(() => server.write(bytes), this.lateMs).unref()
      return server.write(bytes)
    }
    const say = (): void => {
      for (let fault = sent[0]?.fault; /^[-:]/.test(fault ?? ''); fault = sent[0]?.fault) {
        sent.shift()
        deliver(Buffer.from(`${fault}\r\n`))
      }
    }
    const hold = (what: 'commands' | 'replies', act: () => void): void => {
      holds.add(what)
      setTimeout(() => {
        holds.delete(what)
        act()
        if (server.destroyed && holds.size === 0) redis.end()
      }, LATE_MS).unref()
    }
    const execute = (command: Command): void => {
      pass(command, {})
      for (const each of waiting.splice(0)) each()
    }
    const handle = (command: Command): void => {
      if (holds.has('commands')) return void waiting.push(() => handle(command))
      words.add(command.words[0] ?? '')
      const turn = this.#turn(command, port)
      const { fault } = turn
      if (fault === 'is lost' || fault === 'is executed late') {
        holds.add('commands')
        const begin = fault === 'is lost' ? cut : () => hold('commands', () => execute(command))
        // Not before all others have their replies.
        if (sent.length === 0) begin()
        else onIdle = begin
      } else if (/^[-:]/.test(fault ?? '')) {
        sent.push(turn)
        say()
      } else pass(command, turn)
    }
    server.on('data', (chunk: Buffer) => {
      input = Buffer.concat([input, chunk])
      for (let next = firstCommand(input); next !== undefined; next = firstCommand(input)) {
        input = input.subarray(next.bytes.length)
        handle(next)
      }
    })
    redis.on('data', (chunk: Buffer) => {
      output = Buffer.concat([output, chunk])
      for (let end = replyEnd(output); output.length > 0 && end < Infinity; end = replyEnd(output)) {
        const bytes = Buffer.from(output.subarray(0, end))
        output = output.subarray(end)
        const { fault, suffered, asksWho } = (isPush(bytes) ? undefined : sent.shift()) ?? {}
        if (fault === 'gets no reply') {
          suffered?.()
          return cut()
        }
        if (fault === 'gets a last reply') return void server.end(bytes, cut)
        if (fault === 'gets a late reply') hold('replies', () => late.splice(0).forEach((each) => server.write(each)))
        deliver(this.#renamed(bytes, asksWho))
        say()
        if (sent.length > 0) continue
        onIdle?.()
        onIdle = undefined
      }
    })
  }
}
