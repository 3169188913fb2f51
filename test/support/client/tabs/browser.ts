import { LATE_MS, PageSocket, WAY_MS } from './page-socket.ts'
import { SessionService, type ServedSession } from './session-service.ts'
import { Tab, type Channel } from './tab.ts'
import { TabLocks } from './tab-locks.ts'
import { VirtualTime } from './virtual-time.ts'
import { PROBLEM, problemBody } from '../own-problem.ts'

/** What may happen to a message: a request, a response, a handshake, or a message of a session socket. */
export type MessageFault = 'lost' | 'broken' | 'late' | 'twice' | 'proxy'

/** What a browser notices of a request that nobody answers. */
const BROKEN_MS = 5

/** A browser with tabs, its network, and a server. */
export class Browser {
  readonly time = new VirtualTime()
  readonly service = new SessionService(this.time)
  readonly tabs = new Set<Tab>()
  readonly sockets = new Set<PageSocket>()
  readonly errors: unknown[] = []
  /** The session that the cookie names. */
  cookie: ServedSession | undefined
  isOnline = true
  readonly hasLocks: boolean
  isServerUp = true
  /** How the server closes each session socket at once, if it does. */
  refusal: readonly [code: number, reason: string] | undefined
  /** How many messages there have been, and what happens to one of them. */
  messages = 0
  fault: { readonly at: number; readonly is: MessageFault } | undefined
  onTold: (tab: Tab) => void = () => undefined
  readonly #locks = new TabLocks(this.time)
  #seed = 1

  /** @param hasLocks whether tabs may share what they know, which a page without TLS may not */
  constructor(hasLocks = true) {
    this.hasLocks = hasLocks
  }

  random(): number {
    this.#seed = (this.#seed * 48_271) % 2_147_483_647
    return this.#seed / 2_147_483_647
  }

  onError(error: unknown): void {
    this.errors.push(error)
  }

  /** Counts a message. @returns what happens to it */
  strikes(): MessageFault | undefined {
    return this.messages++ === this.fault?.at ? this.fault.is : undefined
  }

  openTab(): Tab {
    const tab = new Tab(this)
    this.tabs.add(tab)
    tab.follow()
    return tab
  }

  /** The page goes without a word, as when its tab is closed or the user leaves. */
  discard(tab: Tab): void {
    tab.is = 'gone'
    this.tabs.delete(tab)
    this.time.forget(tab)
    tab.channels.clear()
    for (const socket of this.sockets) if (socket.tab === tab) socket.close()
    this.#locks.forget(tab)
  }

  /** A login, which ends in this tab. The provider takes a moment, and so does its cookie. */
  async logIn(tab: Tab, subject: string, wayMs = WAY_MS): Promise<Tab> {
    this.discard(tab)
    await this.time.pass(3000)
    const session = this.service.logIn(subject, this.service.isLive(this.cookie) ? this.cookie : undefined)
    await this.time.pass(wayMs)
    this.cookie = session
    return this.openTab()
  }

  setOnline(isOnline: boolean): void {
    if (isOnline === this.isOnline) return
    this.isOnline = isOnline
    if (!isOnline) for (const socket of this.sockets) socket.isDead = true
    for (const tab of this.tabs) if (!tab.isStill) tab.event(isOnline ? 'online' : 'offline')
  }

  /** The machine sleeps. After minutes the server has given up its connections, which it does not learn. */
  async sleep(ms: number): Promise<void> {
    if (ms > 120_000) for (const socket of this.sockets) socket.isDead = true
    await this.time.sleep(ms)
  }

  hide(tab: Tab): void {
    tab.event('pagehide')
    tab.is = 'away'
    for (const socket of this.sockets) if (socket.tab === tab) socket.close()
  }

  show(tab: Tab): void {
    const wasAway = tab.is === 'away'
    tab.is = 'shown'
    tab.event(wasAway ? 'pageshow' : 'visibilitychange')
  }

  navigatorOf(tab: Tab): object {
    const isOnline = (): boolean => this.isOnline
    return {
      get onLine() {
        return isOnline()
      },
      locks: this.hasLocks ? this.#locks.of(tab) : undefined,
    }
  }

  channelOf(tab: Tab): unknown {
    const post = (own: Channel, data: unknown): void => {
      for (const other of this.tabs)
        for (const channel of other.channels)
          if (channel !== own && channel.name === own.name)
            this.time.later(1, () => other.channels.has(channel) && channel.hears(data), other)
    }
    return class {
      onmessage: ((event: { data: unknown }) => void) | null = null
      readonly #own: Channel
      constructor(name: string) {
        this.#own = { name, hears: (data) => this.onmessage?.({ data }) }
        tab.channels.add(this.#own)
      }
      postMessage(message: unknown): void {
        if (tab.is === 'gone') return
        if (!tab.channels.has(this.#own)) throw new DOMException('closed', 'InvalidStateError')
        post(this.#own, structuredClone(message))
      }
      close(): void {
        tab.channels.delete(this.#own)
      }
    }
  }

  socketOf(tab: Tab): unknown {
    const connect = (): PageSocket => this.#connect(tab)
    return function () {
      return connect()
    }
  }

  #connect(tab: Tab): PageSocket {
    const socket = new PageSocket(this, tab)
    if (tab.is === 'gone') return socket
    this.sockets.add(socket)
    const fault = this.strikes()
    const isLost = !this.isOnline || fault === 'lost'
    if (isLost || !this.isServerUp || fault === 'broken' || fault === 'proxy') {
      this.time.later(isLost ? 60_000 : BROKEN_MS, () => socket.breaks())
      return socket
    }
    this.time.later(fault === 'late' ? LATE_MS : WAY_MS, () => {
      if (socket.readyState > 1) return
      socket.open()
      if (this.refusal) socket.close(...this.refusal)
      else this.service.open(socket)
    })
    return socket
  }

  fetch(tab: Tab, path: string, { method = 'GET', signal }: RequestInit): Promise<Response> {
    tab.calls++
    const { cookie } = this
    return new Promise((resolve, reject) => {
      signal?.addEventListener('abort', () => reject(signal.reason as Error))
      const broken = (): unknown => this.time.later(BROKEN_MS, () => reject(new TypeError('Failed to fetch')), tab)
      const fault = this.strikes()
      if (fault === 'lost') return
      if (!this.isOnline || fault === 'broken') return void broken()
      this.time.later(fault === 'late' ? LATE_MS : WAY_MS, () => {
        if (!this.isServerUp) return void broken()
        const [response, arrives] =
          fault === 'proxy' ? [new Response('', { status: 502 })] : this.#serve(method, path, cookie)
        const answerFault = this.strikes()
        if (answerFault === 'lost') return
        if (answerFault === 'broken') return void broken()
        this.time.later(answerFault === 'late' ? LATE_MS : WAY_MS, () => {
          if (!this.isOnline) return void broken()
          arrives?.()
          this.time.later(0, () => resolve(response), tab)
        })
      })
    })
  }

  #serve(method: string, path: string, session: ServedSession | undefined): [Response, (() => void)?] {
    const { service } = this
    if (path === '/auth/session' && method === 'GET') return [Response.json(service.body(session))]
    if (path.startsWith('/auth/logout')) {
      if (session) service.end(session, 'logout')
      return [
        new Response(null, { status: 204 }),
        () => (this.cookie = this.cookie === session ? undefined : this.cookie),
      ]
    }
    if (!service.isLive(session)) {
      return [new Response(problemBody('login_required', { status: 401 }), { status: 401, headers: PROBLEM })]
    }
    service.use(session)
    return [method === 'GET' ? Response.json({}) : new Response(null, { status: 204 })]
  }
}
