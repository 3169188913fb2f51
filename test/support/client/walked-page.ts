import { mock } from 'node:test'
import { createClient, type Client, type PublicSocket } from '../../../client/dist/client.js'

/** What happens to a page, to its network or to its session. */
export type PageStep =
  | { readonly is: 'call'; readonly what: 'subscribe' | 'check' | 'close' }
  | { readonly is: 'page'; readonly event: 'pagehide' | 'pageshow' | 'online' | 'offline' | 'visibilitychange' }
  | { readonly is: 'answer'; readonly how: 'ends' | 'true' | 'proxy' | 'rejected' }
  | { readonly is: 'socket'; readonly how: 'opens' | 'speaks' | 'pongs' | 'ends' }
  | { readonly is: 'close'; readonly code: number; readonly reason: string }
  | { readonly is: 'session'; readonly to: 'log in' | 'log out' }
  | { readonly is: 'lead' | 'refuse' }
  | { readonly is: 'time'; readonly ms: number }

type Answer = PageStep & { readonly is: 'answer' }

const page = new EventTarget()
const browser = { onLine: true, locks: undefined as object | undefined }

/** Gives this process what a page has. Timers and the time of day go on when a test says so. */
export function becomePage(): void {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval', 'Date'], now: 1_700_000_000_000 })
  Object.defineProperty(globalThis, 'navigator', { value: browser })
  Object.assign(globalThis, {
    addEventListener: page.addEventListener.bind(page),
    BroadcastChannel: class {
      #isClosed = false
      postMessage(): void {
        if (this.#isClosed) throw new Error('InvalidStateError')
      }
      close(): void {
        this.#isClosed = true
      }
    },
    reportError: () => undefined,
  })
}

class WalkedSocket {
  readyState = 0
  readonly bufferedAmount = 0
  onopen: (() => void) | null = null
  onmessage: ((event: { data: string }) => void) | null = null
  onclose: ((event: { code: number; reason: string }) => void) | null = null
  readonly path: string
  readonly #world: WalkedPage
  #pings: number[] = []

  constructor(world: WalkedPage, url: string) {
    this.#world = world
    this.path = new URL(url).pathname
  }

  open(): void {
    if (this.readyState !== 0) return
    this.readyState = 1
    this.onopen?.()
    if (this.path === '/ws/session') this.say(this.#world.body())
  }

  say(message: object): void {
    if (this.readyState === 1) this.onmessage?.({ data: JSON.stringify(message) })
  }

  send(text: string): void {
    const { ping, sell, req_id } = JSON.parse(text) as { ping?: number; sell?: number; req_id: number }
    if (sell !== undefined) this.#world.sales++
    if (ping !== undefined) {
      this.#pings.push(req_id)
      this.#world.pings++
    }
    if (this.#world.isCalm) this.pong()
  }

  pong(): void {
    for (const req_id of this.#pings.splice(0)) this.say({ msg_type: 'ping', ping: 'pong', req_id })
  }

  end(code: number, reason: string): void {
    this.readyState = 3
    this.#world.sockets.delete(this)
    this.onclose?.({ code, reason })
  }

  close(): void {
    this.readyState = 3
    this.#world.sockets.delete(this)
  }
}

/** A client in a page where anything may happen, and its server. */
export class WalkedPage {
  readonly sockets = new Set<WalkedSocket>()
  readonly client: Client
  readonly socket: PublicSocket
  /** True once nothing but good happens any more. */
  isCalm = false
  /** How many calls of the server there were, and how many pings and sales on all sockets. */
  calls = 0
  /** How the page has asked why its sockets do not open. */
  readonly asked: { readonly path: string; readonly init: RequestInit }[] = []
  pings = 0
  sales = 0
  /** The error of a stream of prices. */
  error: string | undefined
  /** True once the server has said something after which a socket must not be opened again. */
  mayEnd = false
  /** How long a session lasts, how long it may be unused, and by how much the clock of the server is ahead, in seconds. */
  lifeSeconds = 36_000
  idleSeconds = 36_000
  aheadSeconds = 0
  #session = 0
  #isActive = false
  #isAway = false
  #refusesNext = false
  #waiting: ((answer: Answer['how']) => void)[] = []
  #leads: (() => void)[] = []

  constructor(hasLocks: boolean) {
    browser.onLine = true
    browser.locks = hasLocks ? { request: this.#request } : undefined
    const connect = (url: string): WalkedSocket => this.#connect(url)
    this.client = createClient({
      baseUrl: 'http://walked.test',
      fetch: (url, init) => this.#fetch(new URL(url).pathname, init),
      WebSocket: function (url: string) {
        return connect(url)
      } as never,
    })
    this.socket = this.client.publicSocket()
    this.socket.subscribe(
      { ticks: 'R_100' },
      () => undefined,
      ({ code }) => (this.error = code),
    )
  }

  /** How many sockets with this path there are. */
  socketsTo(path: string): number {
    return [...this.sockets].filter((socket) => socket.path === path).length
  }

  /** The state that the page must show in the end. */
  get truth(): 'active' | 'anonymous' {
    return this.#isActive ? 'active' : 'anonymous'
  }

  body(): object {
    const now = Math.floor(Date.now() / 1000) + this.aheadSeconds
    if (!this.#isActive) return { authenticated: false, now }
    const session = `session-${this.#session}`
    return {
      authenticated: true,
      now,
      session,
      scope: 'trade',
      expires_at: now + this.lifeSeconds,
      idle_expires_at: now + this.idleSeconds,
    }
  }

  async step(step: PageStep): Promise<void> {
    this.#act(step)
    // Promises settle.
    await new Promise((resolve) => void setImmediate(resolve))
  }

  /** From now on the page is shown, the network works, and the server answers. */
  calm(): void {
    this.isCalm = true
    this.#refusesNext = false
    this.#act({ is: 'page', event: 'online' })
    this.#act({ is: 'page', event: 'pageshow' })
    this.#act({ is: 'call', what: 'subscribe' })
  }

  /** Lets time pass in which everything arrives. */
  async pass(ms: number): Promise<void> {
    for (let passed = 0; passed < ms; passed += 5000) {
      for (const answer of this.#waiting.splice(0)) answer('true')
      for (const lead of this.#leads.splice(0)) lead()
      for (const socket of this.sockets) {
        socket.open()
        socket.pong()
      }
      await this.step({ is: 'time', ms: 5000 })
    }
  }

  #act(step: PageStep): void {
    const [socket] = [...this.sockets].toReversed()
    switch (step.is) {
      case 'call':
        if (step.what === 'subscribe') this.client.session.subscribe(() => undefined)
        else if (step.what === 'check') void this.client.session.check()
        else this.client.session.close()
        return
      case 'page':
        return this.#pageEvent(step.event)
      case 'answer':
        return this.#waiting.shift()?.(step.how)
      case 'socket':
        if (step.how === 'opens') socket?.open()
        else if (step.how === 'pongs') socket?.pong()
        else if (step.how === 'speaks') socket?.say(socket.path === '/ws/session' ? this.body() : { msg_type: 'tick' })
        else if (socket?.path === '/ws/session') socket.say({ event: 'ended', reason: 'expired' })
        return
      case 'close':
        if (!socket) return
        if ([4401, 4403, 4404].includes(step.code) && socket.path !== '/ws/session') this.mayEnd = true
        return socket.end(step.code, step.reason)
      case 'session':
        this.#isActive = step.to === 'log in'
        this.#session++
        // A login navigates: the page that it returns to asks.
        if (this.#isActive) void this.client.session.check()
        return
      case 'lead':
        return this.#leads.shift()?.()
      case 'refuse':
        this.#refusesNext = true
        return
      case 'time':
        return mock.timers.tick(step.ms)
    }
  }

  #pageEvent(name: string): void {
    if (name === 'online' || name === 'offline') browser.onLine = name === 'online'
    // A page that is away gets no events, and only one that is can be shown again.
    if ((name === 'pageshow') !== this.#isAway) return
    if (name === 'pagehide' || name === 'pageshow') this.#isAway = !this.#isAway
    page.dispatchEvent(Object.assign(new Event(name), { persisted: true }))
  }

  #fetch(path: string, init: RequestInit): Promise<Response> {
    if (path.startsWith('/ws/')) this.asked.push({ path, init })
    else this.calls++
    return new Promise((resolve, reject) => {
      this.#waiting.push((how) => {
        if (how === 'ends') reject(new TypeError('Failed to fetch'))
        else if (how === 'rejected') resolve(Response.json({ code: 'origin_rejected' }, { status: 403 }))
        else resolve(how === 'true' ? Response.json(this.body()) : new Response('<h1>proxy</h1>', { status: 502 }))
      })
    })
  }

  #connect(url: string): WalkedSocket {
    if (this.#refusesNext) {
      this.#refusesNext = false
      throw new Error('refused')
    }
    const socket = new WalkedSocket(this, url)
    this.sockets.add(socket)
    return socket
  }

  readonly #request = (_name: string, { signal }: { signal: AbortSignal }, granted: () => unknown): Promise<unknown> =>
    new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason as Error))
      this.#leads.push(() => resolve(granted()))
    })
}
