import { EventEmitter } from 'node:events'
import type { Test } from 'tap'
import { Connection } from '../../../src/store/links/connection.ts'

/** What a server replies to the words of a command, or to `connect`. An error is thrown. */
export type Server = (words: readonly string[], connection: Connection) => unknown

const HELLO = { server: 'redis', version: '7.2.4', role: 'master' }

/** A master that does all that is wanted of it, but for some commands. */
export function master(changes: Readonly<Record<string, unknown>> = {}): Server {
  return (words, connection) => {
    const [name = '', section] = words
    const replies: Readonly<Record<string, unknown>> = {
      HELLO,
      TIME: [String(Math.floor(Date.now() / 1000)), '0'],
      INFO: '',
      EVAL: [],
      CLIENT: 'OK',
      SET: 'OK',
      GET: '0',
      ROLE: ['master', 0, []],
      PING: 'PONG',
      ...changes,
    }
    const reply = replies[`${name} ${section}`] ?? replies[name]
    return typeof reply === 'function' ? (reply as Server)(words, connection) : reply
  }
}

/** The port to which a connection goes. */
function portOf({ options }: Connection): number {
  const { url, socket } = options as { url?: string; socket?: { port?: number } }
  return url === undefined ? (socket?.port ?? 0) : Number(new URL(url).port || 6379)
}

/** Servers without servers, by their ports. At other ports there is none. */
export function serversOf(t: Test, servers: Record<number, Server | undefined>) {
  const sent: string[] = []
  const all: { port: number; connection: Connection; channels: Map<string, (text: string) => void> }[] = []
  const states = new Map<Connection, 'opening' | 'open' | 'closed'>()
  const ask = async (connection: Connection, words: readonly string[]): Promise<unknown> => {
    const port = portOf(connection)
    const server = servers[port]
    if (words[0] !== 'connect' && states.get(connection) !== 'open') throw new Error('it is not open')
    if (server === undefined) throw Object.assign(new Error('refused'), { code: 'ECONNREFUSED' })
    sent.push([port, ...words].join(' '))
    const reply = await server(words, connection)
    if (reply instanceof Error) throw reply
    return reply
  }
  const methods: Readonly<Record<string, (this: Connection, ...args: never[]) => unknown>> = {
    async connect() {
      all.push({ port: portOf(this), connection: this, channels: new Map() })
      states.set(this, 'opening')
      await ask(this, ['connect']).catch((error: unknown) => {
        states.set(this, 'closed')
        throw error
      })
      if (states.get(this) !== 'opening') throw new Error('closed')
      states.set(this, 'open')
      this.emit('ready')
      return this
    },
    destroy() {
      if (states.get(this) !== 'closed') sent.push(`${portOf(this)} closed`)
      states.set(this, 'closed')
    },
    async close() {
      sent.push(`${portOf(this)} closed softly`)
      states.set(this, 'closed')
    },
    sendCommand(words: string[]) {
      return ask(this, words)
    },
    // `subscribe` is set for each connection, to this.
    async SUBSCRIBE(channel: string, listener: (text: string) => void) {
      await ask(this, ['SUBSCRIBE', channel])
      all.find(({ connection }) => connection === this)?.channels.set(channel, listener)
    },
  }
  for (const [name, value] of Object.entries(methods)) t.intercept(Connection.prototype, name as 'connect', { value })
  // `t.intercept` does not tell a getter whose it is.
  for (const [name, among] of [
    ['isOpen', ['opening', 'open']],
    ['isReady', ['open']],
  ] as const) {
    Object.defineProperty(Connection.prototype, name, {
      configurable: true,
      get(this: Connection) {
        return (among as readonly unknown[]).includes(states.get(this))
      },
    })
    t.teardown(() => Reflect.deleteProperty(Connection.prototype, name))
  }
  // The pauses between tries keep no process alive.
  const alive = setTimeout(() => undefined, 5000)
  t.teardown(() => clearTimeout(alive))
  return {
    servers,
    /** What was sent so far, after the port. */
    sent: () => sent.splice(0),
    /** The connections that are open. */
    open: () => all.filter(({ connection }) => states.get(connection) === 'open'),
    /** The server ends its connections. */
    lose: (port: number) => {
      for (const { port: own, connection } of [...all])
        if (own === port) EventEmitter.prototype.emit.call(connection, 'end')
    },
  }
}

/** The answer to CLUSTER SLOTS of a Cluster whose masters have equal parts. */
export function slotsOf(...ports: number[]): unknown[] {
  const each = Math.ceil(16_384 / ports.length)
  return ports.map((port, at) => [at * each, Math.min(16_384, (at + 1) * each) - 1, ['127.0.0.1', port]])
}
