import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import type { Client, ServerOptions, SocketError, TradingSocket } from '../../../client/dist/client.js'
import { ACCOUNTS } from '../../support/user.ts'
import type { Fleet } from '../fleet.ts'
import type { Told } from '../history.ts'
import type { Actor } from '../plan.ts'
import { Page } from './page.ts'

const THINKS_MS = { least: 200, most: 900 }
/** After a login that failed, or while there is no connection. */
const AGAIN_MS = 500
/** An answer that has not come by then is lost. */
const ANSWER_MS = 5000
/** For so long a page looks for what became of a purchase. */
const LOOKS_MS = 30_000
const CONTRACT = {
  ...{ basis: 'stake', contract_type: 'CALL', currency: 'USD', underlying_symbol: 'R_100' },
  ...{ duration: 5, duration_unit: 't' },
}

type Package = typeof import('../../../client/dist/client.js')
type Orders = typeof import('../../../client/dist/client/orders.js')
type Untyped = (message: object, options: object) => Promise<{ buy: { contract_id: number | string } }>

/**
 * Acts for somebody whose page has the browser package of the fleet's checkout, until the run is over: buys on a trading socket, and
 * finds out what became of a purchase when the answer is lost.
 */
export async function actAsBuyer(actor: Actor, fleet: Fleet, over: AbortSignal): Promise<void> {
  const page = new Page(actor, fleet)
  const part = (file: string): string => pathToFileURL(join(fleet.checkout, 'client/dist', file)).href
  const { createClient } = (await import(part('client.js'))) as Package
  const { fate } = (await import(part('client/orders.js'))) as Orders
  let client: Client | undefined
  let socket: TradingSocket | undefined
  for (let nth = 0; !over.aborted; nth++) {
    if (page.session === undefined) {
      client?.close()
      client = socket = undefined
      if ((await page.logIn()).result !== 'ok') await pause(AGAIN_MS)
      continue
    }
    client ??= createClient(noting(page.options, fleet))
    socket ??= await opened(page, client)
    if (socket === undefined || socket.status().state !== 'open') {
      if (socket?.status().state === 'ended') page.forget(page.session)
      await pause(AGAIN_MS)
      continue
    }
    await buy(page, { socket, fate, nth, over })
    await pause(THINKS_MS.least + page.random() * (THINKS_MS.most - THINKS_MS.least))
  }
  client?.close()
}

/** Notes the sockets of a page. */
function noting(options: ServerOptions, { observer: { now, history } }: Fleet): ServerOptions {
  type PageSocket = NonNullable<ServerOptions['WebSocket']>
  const { WebSocket: Plain = WebSocket } = options
  const noted = function (url: string): InstanceType<PageSocket> {
    const socket = new Plain(url)
    const opened: (typeof history.pageSockets)[number] = { at: now(), closedAt: undefined }
    history.pageSockets.push(opened)
    ;(socket as unknown as EventTarget).addEventListener('close', () => void (opened.closedAt = now()))
    return socket
  }
  return { ...options, WebSocket: noted as unknown as PageSocket }
}

/** A socket on the account of a page. Undefined while that is not known. */
async function opened(page: Page, client: Client): Promise<TradingSocket | undefined> {
  const { body } = await page.ask({ kind: 'read', method: 'GET', path: ACCOUNTS })
  const account = /"account_id":"(\w+)"/.exec(body)?.[1]
  return account === undefined ? undefined : client.tradingSocket(account)
}

/** Buys once. Each purchase has an amount of its own, so that no other contract fits it. */
async function buy(
  { name: user, fleet: { observer } }: Page,
  { socket, fate, nth, over }: { socket: TradingSocket; fate: Orders['fate']; nth: number; over: AbortSignal },
): Promise<void> {
  const purchase = `${user}-b${nth}`
  const note = (is: Told['is'], contractId?: number | string): void => {
    const id = contractId === undefined ? {} : { contractId: String(contractId) }
    observer.history.told.push({ user, at: observer.now(), purchase, is, ...id })
  }
  const parameters = { ...CONTRACT, amount: (100 + nth) / 100 }
  const message = { buy: 1, price: 100, parameters, passthrough: { purchase } }
  try {
    const reply = await (socket.command as Untyped)(message, { timeoutMs: ANSWER_MS })
    return note('made', reply.buy.contract_id)
  } catch (error) {
    const { outcome, order } = error as SocketError
    if (outcome !== 'unknown') return note('not made')
    if (order === undefined) return note('unknown')
    const signal = AbortSignal.any([over, AbortSignal.timeout(LOOKS_MS)])
    const found = await fate(error as SocketError, { signal }).catch(() => undefined)
    if (found?.is === 'made') note('made', found.contract.contract_id)
    else note('unknown')
  }
}
