import { createSession, type ServerOptions, type SessionStore } from '../../client/dist/client.js'

/** What can happen to a browser and its sessions, and what the network does with the messages about it. */
export interface Step {
  readonly do: 'log in' | 'land' | 'log out' | 'expire' | 'vanish' | 'look' | 'deliver'
  /** Which of the connections delivers its next message. */
  readonly which: number
}

type Deliver = () => void

/**
 * A server and a network in which every response and every message of a session socket arrives when a test wants it to,
 * and in any order between connections, as it does between a browser's own connections. Nothing is sent over a wire.
 */
export class SessionModel {
  readonly tabs: readonly SessionStore[]
  /** The live session, and the one that the browser's cookie names: 0 for none. */
  #live = 0
  #cookie = 0
  #issued = 0
  readonly #sockets = new Set<ModelSocket>()
  /** Each connection's messages keep their order. */
  readonly #lines: Deliver[][] = []

  constructor(name: string, count: number) {
    const open = (socket: ModelSocket): void => this.#open(socket)
    const options = {
      baseUrl: `http://${name}.test`,
      fetch: () => this.#ask(),
      WebSocket: class extends ModelSocket {
        constructor() {
          super()
          open(this)
        }
      } as unknown as NonNullable<ServerOptions['WebSocket']>,
    }
    this.tabs = Array.from({ length: count }, () => createSession(options))
    for (const tab of this.tabs) tab.subscribe(() => undefined)
  }

  /** What every tab should know in the end. */
  get truth(): 'active' | 'anonymous' {
    return this.#live > 0 && this.#cookie === this.#live ? 'active' : 'anonymous'
  }

  /** Session sockets that are open. */
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
      case 'land':
        // The page that the login came back to.
        this.#cookie = this.#live
        return void first?.check()
      case 'log out':
        this.#end('logout')
        this.#cookie = 0
        return first?.end('logout')
      case 'expire':
        return this.#end('idle')
      case 'vanish':
        return this.#end()
      case 'look':
        return void this.tabs.at(-1)?.check()
      case 'deliver':
        return this.#deliver(step.which)
    }
  }

  /** Everything that is under way arrives. */
  flush(): void {
    while (this.#lines.length > 0) this.#deliver(0)
  }

  close(): void {
    for (const tab of this.tabs) tab.close()
  }

  #deliver(which: number): void {
    const line = this.#lines[which % this.#lines.length]
    line?.shift()?.()
    for (const [index, each] of [...this.#lines.entries()].toReversed()) {
      if (each.length === 0) this.#lines.splice(index, 1)
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
      scope: `${this.#live}`,
    }
  }

  /** The server answers at once; the answer takes its time. */
  #ask(): Promise<Response> {
    const body = JSON.stringify(this.#body())
    return new Promise((resolve) => void this.#lines.push([() => resolve(new Response(body))]))
  }

  #open(socket: ModelSocket): void {
    // A body says what was so when it was sent.
    const body = { event: 'session', ...this.#body() }
    const messages = [this.truth === 'active' ? () => socket.receive(body) : () => socket.end(4401, 'login_required')]
    socket.session = this.#live
    socket.line = messages
    socket.onEnd = () => this.#sockets.delete(socket)
    this.#sockets.add(socket)
    this.#lines.push(messages)
  }

  #end(reason?: string): void {
    for (const socket of this.#sockets) {
      if (socket.session !== this.#live || this.#live === 0) continue
      if (!this.#lines.includes(socket.line)) this.#lines.push(socket.line)
      if (reason !== undefined) socket.line.push(() => socket.receive({ event: 'ended', reason }))
      socket.line.push(() => socket.end(4401, 'session_expired'))
    }
    this.#live = 0
  }
}

/** As much of a WebSocket as a session socket is. */
class ModelSocket {
  onmessage: (event: { data: string }) => void = () => undefined
  onclose: (event: { code: number; reason: string }) => void = () => undefined
  session = 0
  line: Deliver[] = []
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
