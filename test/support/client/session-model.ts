import {
  createSession,
  type ActiveSession,
  type ServerOptions,
  type SessionStore,
} from '../../../client/dist/client.js'

/** An event of a browser, of its session or of the network. */
export interface Step {
  readonly do: 'log in' | 'land' | 'log out' | 'expire' | 'vanish' | 'check' | 'fail' | 'deliver'
  /** Which connection delivers its next message. */
  readonly which: number
}

type Deliver = () => void

/**
 * A server and a network in memory. A test decides when each response and each message of a session socket arrives. The
 * order is arbitrary between connections, as it is in a browser, and kept on each connection.
 */
export class SessionModel {
  readonly tabs: readonly SessionStore[]
  /** The session whose data the page in each tab shows; undefined for none. It loads them when the package says that it must. */
  readonly shown: (string | undefined)[] = []
  /** The live session; 0 for none. */
  #live = 0
  /** The session that the cookie of the browser names; 0 for none. */
  #cookie = 0
  #issued = 0
  /** How many of the next questions the server cannot answer. */
  #failing = 0
  readonly #sockets = new Set<ModelSocket>()
  /** The undelivered messages of each connection, in order. */
  readonly #connections: Deliver[][] = []

  constructor(name: string, count: number) {
    const open = (socket: ModelSocket): void => this.#open(socket)
    const options = {
      baseUrl: `http://${name}.test`,
      fetch: () => this.#fetch(),
      WebSocket: class extends ModelSocket {
        constructor() {
          super()
          open(this)
        }
      } as unknown as NonNullable<ServerOptions['WebSocket']>,
    }
    this.tabs = Array.from({ length: count }, () => createSession(options))
    for (const [index, tab] of this.tabs.entries()) {
      tab.subscribe((isOther) => {
        const { session } = tab.get() as Partial<ActiveSession>
        if (isOther) this.shown[index] = session
      })
    }
  }

  /** The session that every page must show in the end; undefined for none. */
  get session(): string | undefined {
    return this.truth === 'active' ? `session ${this.#live}` : undefined
  }

  /** The state that every tab must reach in the end. */
  get truth(): 'active' | 'anonymous' {
    return this.#live > 0 && this.#cookie === this.#live ? 'active' : 'anonymous'
  }

  /** The number of open session sockets. */
  get open(): number {
    return this.#sockets.size
  }

  step(step: Step): void {
    const [first] = this.tabs
    switch (step.do) {
      case 'log in':
        this.#end('replaced')
        this.#live = ++this.#issued
        return
      case 'land': {
        const failing = this.#failing
        // The login returns to the first tab, which is answered.
        this.#cookie = this.#live
        this.#failing = 0
        void first?.check()
        this.#failing = failing
        return
      }
      case 'log out':
        this.#end('logout')
        this.#cookie = 0
        return first?.end('logout')
      case 'expire':
        return this.#end('idle')
      case 'vanish':
        return this.#end()
      case 'check':
        return void this.tabs.at(-1)?.check()
      case 'fail':
        this.#failing++
        return
      case 'deliver':
        return this.#deliver(step.which)
    }
  }

  /** Delivers every message. */
  flush(): void {
    while (this.#connections.length > 0) this.#deliver(0)
  }

  close(): void {
    for (const tab of this.tabs) tab.close()
  }

  #deliver(which: number): void {
    this.#connections[which % this.#connections.length]?.shift()?.()
    for (const [index, each] of [...this.#connections.entries()].toReversed()) {
      if (each.length === 0) this.#connections.splice(index, 1)
    }
  }

  #body(): Record<string, unknown> {
    const now = Math.floor(Date.now() / 1000)
    if (this.truth === 'anonymous') return { authenticated: false, now }
    return {
      authenticated: true,
      now,
      expires_at: now + 3600,
      idle_expires_at: now + 3600,
      scope: 'trade',
      session: this.session,
    }
  }

  /** The body is that of the moment of the request, however late the response arrives. */
  #fetch(): Promise<Response> {
    const response = this.#failing > 0 ? new Response(null, { status: 503 }) : Response.json(this.#body())
    this.#failing = Math.max(this.#failing - 1, 0)
    return new Promise((resolve) => void this.#connections.push([() => resolve(response)]))
  }

  #open(socket: ModelSocket): void {
    // The body is that of the moment of the handshake.
    const body = { event: 'session', ...this.#body() }
    const messages = [this.truth === 'active' ? () => socket.receive(body) : () => socket.end(4401, 'login_required')]
    socket.session = this.#live
    socket.messages = messages
    socket.onEnd = () => this.#sockets.delete(socket)
    this.#sockets.add(socket)
    this.#connections.push(messages)
  }

  #end(reason?: string): void {
    for (const socket of this.#sockets) {
      if (socket.session !== this.#live || this.#live === 0) continue
      if (!this.#connections.includes(socket.messages)) this.#connections.push(socket.messages)
      if (reason !== undefined) socket.messages.push(() => socket.receive({ event: 'ended', reason }))
      socket.messages.push(() => socket.end(4401, 'session_expired'))
    }
    this.#live = 0
  }
}

/** The part of a WebSocket that the package uses for its session socket. */
class ModelSocket {
  onmessage: (event: { data: string }) => void = () => undefined
  onclose: (event: { code: number; reason: string }) => void = () => undefined
  session = 0
  messages: Deliver[] = []
  onEnd: () => void = () => undefined
  #isOpen = true

  receive(message: Record<string, unknown>): void {
    if (this.#isOpen) this.onmessage({ data: JSON.stringify(message) })
  }

  end(code: number, reason: string): void {
    if (!this.#isOpen) return
    this.close()
    this.onclose({ code, reason })
  }

  close(): void {
    this.#isOpen = false
    this.onEnd()
  }
}
