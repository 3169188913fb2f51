import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { parentPort, workerData } from 'node:worker_threads'
import type { Client, ServerOptions, SocketError, TradingSocket } from '../../../client/dist/client.js'
import { JarBrowser, type JarCookie } from '../../support/browser/jar-browser.ts'
import { pageOptions } from '../../support/client/page-client.ts'
import { ACCOUNTS, TRANSFER } from '../../support/user.ts'

/** What a tab has when its page is loaded. */
export interface TabData {
  /** Tells the tab apart from all others on the network. */
  readonly agent: string
  readonly user: string
  readonly checkout: string
  readonly publicUrl: string
  readonly cookies: ReadonlyMap<string, JarCookie>
  readonly stored: ReadonlyMap<string, string>
  /** What the observer's clock is behind that of the process (ms). */
  readonly behindMs: number
  /** 1 while the tab is frozen. */
  readonly frozen: Int32Array
}

/** What a user does in a tab. */
export type Act =
  | {
      readonly is: 'transfer'
      readonly recipient: string
      /** Under which name the package remembers the key, if at all. */
      readonly remember: string | undefined
      /** Whether the page forgets to pass the key on that `once` gives it, which still compiles in JavaScript. */
      readonly forgets: boolean
      /** The user leaves the dialogue so much later. */
      readonly forMs: number
    }
  | { readonly is: 'connect' }
  | { readonly is: 'buy'; readonly purchase: string; readonly amount: number; readonly looksMs: number }
  /** The browser says so. */
  | { readonly is: 'online' | 'offline' }
  | { readonly is: 'freeze' }

/** What a page shows after an act: what became of an order, and the state of its socket. */
export interface Shown {
  readonly is: 'made' | 'not made' | 'unknown'
  /** The response, or the id of the contract. */
  readonly answer?: string | undefined
  /** The code of an error, or the state of the socket. */
  readonly code?: string | undefined
}

/** What a tab reports. */
export type Report =
  | { readonly is: 'shown'; readonly nth: number; readonly shown: Shown }
  | { readonly is: 'stored'; readonly name: string; readonly text: string | undefined }
  | { readonly is: 'socket'; readonly nth: number; readonly isOpen: boolean }
  /** An order leaves the page, by the clock of the observer. */
  | { readonly is: 'sent'; readonly order: string; readonly clickedAt: number; readonly at: number }

/** An answer on the socket that has not come by then is lost. */
const ANSWER_MS = 5000
const TRADING = '/ws/trading/'
const PATH = TRANSFER.replace('/api', '')
const CONTRACT = {
  ...{ basis: 'stake', contract_type: 'CALL', currency: 'USD', underlying_symbol: 'R_100' },
  ...{ duration: 5, duration_unit: 't' },
}

type Package = typeof import('../../../client/dist/client.js')
type Orders = typeof import('../../../client/dist/client/orders.js')
type Untyped = (path: string, init: object) => Promise<Response>
type UntypedCommand = (message: object, options: object) => Promise<{ buy: { contract_id: number | string } }>

const data = workerData as TabData
const port = parentPort as NonNullable<typeof parentPort>
const report = (what: Report): void => port.postMessage(what)
/** The clock of the observer, which goes on while this tab is frozen. */
const now = (): number => Number(process.hrtime.bigint()) / 1e6 - data.behindMs
const online = { onLine: true }
const page = new EventTarget()
const kept = new Map(data.stored)
const clickedAt = new Map<string, number>()

/** Locks and channels are those of a browser, and each user has one of their own. */
const own = (name: string): string => `${data.user} ${name}`

/** What a browser has, and Node.js does not, or has for all tabs of all users. */
function furnish(): void {
  const { locks } = navigator
  const { BroadcastChannel: Channel } = globalThis
  const request = (name: string, ...rest: unknown[]): unknown =>
    (locks.request as (name: string, ...rest: unknown[]) => unknown).call(locks, own(name), ...rest)
  const scope = {
    sessionStorage: {
      getItem: (name: string) => kept.get(name) ?? null,
      setItem: (name: string, text: string) => (kept.set(name, text), report({ is: 'stored', name, text })),
      removeItem: (name: string) => (kept.delete(name), report({ is: 'stored', name, text: undefined })),
    },
    BroadcastChannel: class extends Channel {
      constructor(name: string) {
        super(own(name))
      }
    },
    navigator: {
      locks: { request },
      get onLine() {
        return online.onLine
      },
    },
    addEventListener: page.addEventListener.bind(page),
  }
  for (const [name, value] of Object.entries(scope)) Object.defineProperty(globalThis, name, { value })
}

/** How the package reaches the server from this tab. Whatever carries an order is noted when it leaves. */
function options(): ServerOptions {
  const browser = new JarBrowser()
  browser.userAgent = data.agent
  for (const [key, cookie] of data.cookies) browser.cookies.set(key, cookie)
  browser.page = new URL(data.publicUrl)
  const plain = pageOptions(browser, data.publicUrl, data.publicUrl)
  const { WebSocket: Plain = WebSocket } = plain
  let sockets = 0
  const noted = function (url: string): WebSocket {
    const socket = new Plain(url)
    if (url.includes(TRADING)) {
      const nth = sockets++
      report({ is: 'socket', nth, isOpen: true })
      socket.addEventListener('close', () => report({ is: 'socket', nth, isOpen: false }))
    }
    const send = socket.send.bind(socket)
    socket.send = (text) => (leaves(text), send(text))
    return socket
  }
  return {
    ...plain,
    fetch(url, init) {
      if (!online.onLine) return Promise.reject(new TypeError('the browser is offline'))
      leaves(init?.body)
      return (plain.fetch ?? fetch)(url, init)
    },
    WebSocket: noted as unknown as NonNullable<ServerOptions['WebSocket']>,
  }
}

function leaves(text: unknown): void {
  if (typeof text !== 'string') return
  for (const [order, at] of clickedAt)
    if (text.includes(`"${order}"`)) report({ is: 'sent', order, clickedAt: at, at: now() })
}

furnish()
const part = (file: string): string => pathToFileURL(join(data.checkout, 'client/dist', file)).href
const { createClient, once } = (await import(part('client.js'))) as Package
const client: Client = createClient(options())
let socket: TradingSocket | undefined

async function transfer({ recipient, remember, forgets, forMs }: Extract<Act, { is: 'transfer' }>): Promise<Shown> {
  const json = { data: { to_nickname: recipient, amount: '0.01', currency: 'USD' } }
  const init = { method: 'POST', json, signal: AbortSignal.timeout(forMs) }
  // The types would not let a page forget the key.
  const send = (idempotencyKey: string): Promise<Response> =>
    (client.api as Untyped)(PATH, forgets ? init : { ...init, idempotencyKey })
  try {
    const made = await once(send, remember === undefined ? {} : { remember })
    if (made === undefined) return { is: 'unknown' }
    return { is: 'made', answer: await made.text().catch(() => undefined) }
  } catch (error) {
    const { outcome, code } = error as { outcome?: 'unknown'; code?: string }
    return { is: outcome === 'unknown' ? 'unknown' : 'not made', code }
  }
}

/** Has a socket on the account, if that is known, and says what its state is. */
async function connected(): Promise<Shown> {
  if (socket === undefined) {
    const body = await client.api(ACCOUNTS.replace('/api', '') as '/trading/v1/options/accounts').then(
      (response) => response.text(),
      (error: { readonly code?: string }) => ({ code: error.code }),
    )
    if (typeof body !== 'string') return { is: 'unknown', code: body.code }
    const account = /"account_id":"(\w+)"/.exec(body)?.[1]
    if (account !== undefined) socket = client.tradingSocket(account)
  }
  return { is: 'unknown', code: socket?.status().state }
}

/** Buys once, and finds out what became of that if the answer is lost. */
async function buy({ purchase, amount, looksMs }: Extract<Act, { is: 'buy' }>): Promise<Shown> {
  if (socket === undefined) return { is: 'not made' }
  const message = { buy: 1, price: 100, parameters: { ...CONTRACT, amount }, passthrough: { purchase } }
  try {
    const reply = await (socket.command as UntypedCommand)(message, { timeoutMs: ANSWER_MS })
    return { is: 'made', answer: String(reply.buy.contract_id) }
  } catch (error) {
    const { outcome, order } = error as SocketError
    if (outcome !== 'unknown') return { is: 'not made' }
    if (order === undefined) return { is: 'unknown' }
    const { fate } = (await import(part('client/orders.js'))) as Orders
    const signal = AbortSignal.timeout(looksMs)
    const found = await fate(error as SocketError, { signal }).catch(() => undefined)
    return found?.is === 'made' ? { is: 'made', answer: String(found.contract.contract_id) } : { is: 'unknown' }
  }
}

async function done(act: Act): Promise<Shown> {
  switch (act.is) {
    case 'transfer':
      clickedAt.set(act.recipient, now())
      return transfer(act)
    case 'connect':
      return connected()
    case 'buy':
      clickedAt.set(act.purchase, now())
      return buy(act)
    case 'freeze':
      Atomics.wait(data.frozen, 0, 1)
      return { is: 'unknown' }
    case 'online':
    case 'offline':
      online.onLine = act.is === 'online'
      page.dispatchEvent(new Event(act.is))
      return { is: 'unknown' }
  }
}

port.on('message', ({ nth, act }: { nth: number; act: Act }) => {
  void done(act).then((shown) => report({ is: 'shown', nth, shown }))
})
