import type { Debugged } from '../core/create-client.ts'
import type { Client, PublicSocket, SessionState, SocketStatus, TradingSocket } from '../core/client.ts'
import type { Faults } from './faults.ts'
import { observedFetch } from './observed-fetch.ts'
import { ObservedSocket } from './observed-socket.ts'
import type { Traffic } from './traffic.ts'

/** Members that others may not change, and the devtools replace. */
type Writable<T> = { -readonly [Name in keyof T]: T[Name] }

/** A socket that the page has opened and not closed. */
interface PageSocket {
  readonly path: string
  readonly status: () => SocketStatus
  /** How many requests and commands have not ended. */
  waiting: number
}

/** Who has told the client of its session last, and when. */
interface Source {
  readonly name: string
  readonly at: number
}

/** How long after a message of another tab a change comes from that. */
const TAB_MS = 100

/** A client whose calls, connections and sockets the devtools see. */
export class ObservedClient {
  readonly client: Client
  readonly sockets = new Set<PageSocket>()
  readonly #onChange: () => void
  readonly #tabs: BroadcastChannel | undefined
  #state: SessionState
  #told: Source = { name: 'nobody yet', at: Date.now() }
  #source = this.#told

  /** @param onClose called when the page closes the client */
  constructor([client, server]: Debugged, traffic: Traffic, faults: Faults, onChange: () => void, onClose: () => void) {
    this.client = client
    this.#onChange = onChange
    this.#state = client.session.get()
    const { fetch, socket } = server
    const connection = server as Writable<typeof server>
    connection.fetch = observedFetch(fetch, traffic, faults, ({ method, path }) => this.#tell(`${method} ${path}`))
    connection.socket = (path) =>
      new ObservedSocket(
        () => socket(path),
        path,
        traffic,
        faults,
        () => this.#tell('the session socket'),
      ) as unknown as WebSocket
    this.#tabs = tabsOf(server.base)
    if (this.#tabs) this.#tabs.onmessage = ({ data }) => this.#hearTab(data)
    this.#replace(client, onClose)
  }

  /** Who has told the client of the state that it has now. */
  get source(): Source {
    this.#attribute()
    return this.#source
  }

  #replace(client: Writable<Client>, onClose: () => void): void {
    const { publicSocket, tradingSocket, close } = client
    client.publicSocket = () => this.#opened('/ws/public', publicSocket())
    client.tradingSocket = (id) => this.#opened(`/ws/trading/${id}`, tradingSocket(id))
    client.close = () => {
      close()
      this.#tabs?.close()
      this.#onChange()
      onClose()
    }
  }

  /** Notes that somebody tells of the session. What has changed before was somebody else. */
  #tell(name: string): void {
    this.#attribute()
    this.#told = { name, at: Date.now() }
    setTimeout(() => this.#attribute())
  }

  /**
   * A tab has told of the session, perhaps this one. A client takes only an active session or a notice from another tab, and at once.
   * In all other cases it asks the server, which is then the source.
   */
  #hearTab(data: unknown): void {
    this.#attribute()
    const { authenticated, notice } = Object(data) as { authenticated?: boolean; notice?: unknown }
    if (authenticated !== true && notice === undefined) return
    const before = this.#told
    const tab = { name: 'another tab', at: Date.now() }
    this.#told = tab
    // The message arrives at the client in a task of its own.
    setTimeout(() => {
      this.#attribute()
      if (this.#told === tab) this.#told = before
    }, TAB_MS)
  }

  #attribute(): void {
    const state = this.client.session.get()
    if (state === this.#state) return
    this.#state = state
    this.#source = this.#told
    this.#onChange()
  }

  #opened<S extends PublicSocket | TradingSocket>(path: string, socket: S): S {
    const noted: PageSocket = { path, status: () => socket.status(), waiting: 0 }
    this.sockets.add(noted)
    this.#onChange()
    const changed = socket as Writable<TradingSocket>
    for (const name of ['request', 'command'] as const) {
      const send = changed[name] as ((...given: unknown[]) => Promise<never>) | undefined
      if (!send) continue
      changed[name] = (...given: unknown[]) => {
        noted.waiting++
        this.#onChange()
        return send(...given).finally(() => {
          noted.waiting--
          this.#onChange()
        })
      }
    }
    const close = socket.close.bind(socket)
    changed.close = () => {
      this.sockets.delete(noted)
      this.#onChange()
      close()
    }
    return socket
  }
}

/** A second listener of what tabs tell each other. The name is that of the client. */
function tabsOf(base: string): BroadcastChannel | undefined {
  try {
    return new BroadcastChannel(`trading-bff:${base}`)
  } catch {
    // Firefox has none for a page that may store nothing.
    return undefined
  }
}
