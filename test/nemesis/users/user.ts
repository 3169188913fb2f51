import { setTimeout as pause } from 'node:timers/promises'
import { ACCOUNTS, PUBLIC } from '../../support/user.ts'
import type { Fleet } from '../fleet.ts'
import type { Actor } from '../plan.ts'
import { goOn, goOnTrading } from './left-behind.ts'
import { logOut, logOutAtProvider, repeatLogout } from './logouts.ts'
import { order } from './orders.ts'
import { Page } from './page.ts'
import { openSocket, type OpenSocket } from './sockets.ts'

const THINKS_MS = { least: 50, most: 350 }
/** After a login that failed. */
const AGAIN_MS = 1000
/** The share of logouts at the provider, where it tells the server of them. */
const AT_PROVIDER = 0.5
/** For so long somebody who has logged out there does nothing, while another tab goes on. */
const AWAY_MS = 3000

/** What users buy on their sockets. */
const CONTRACT = {
  ...{ amount: 1, basis: 'stake', contract_type: 'CALL', currency: 'USD' },
  ...{ underlying_symbol: 'R_100', duration: 5, duration_unit: 't' },
}

/** Acts for somebody until the run is over: logs in, reads, orders, opens sockets and sometimes logs out. */
export async function actAsUser(actor: Actor, fleet: Fleet, over: AbortSignal): Promise<void> {
  const user = new User(new Page(actor, fleet), over)
  while (!over.aborted) {
    await user.act()
    const { least, most } = THINKS_MS
    await pause(least + user.page.random() * (most - least))
  }
  await user.leave()
}

class User {
  readonly page: Page
  readonly #over: AbortSignal
  readonly #pending: Promise<void>[] = []
  #account: string | undefined
  #trading: OpenSocket | undefined
  #public: OpenSocket | undefined
  /** Others have the same keys, which are each user's own. */
  #nth = 0

  constructor(page: Page, over: AbortSignal) {
    this.page = page
    this.#over = over
  }

  async act(): Promise<void> {
    const { page } = this
    if (page.session === undefined) return this.#logIn()
    const chance = page.random()
    // A page waits for nothing that it reads, so a user may log out while an instance that stands still has calls of theirs.
    if (chance < 0.4) this.#pending.push(this.#read())
    else if (chance < 0.75) this.#pending.push(order(page, `order-${this.#nth++}`))
    else if (chance < 0.88) await this.#trade()
    else if (chance < 0.96) await this.#watch()
    else if (chance < 0.97) await this.#logInAgain()
    else await this.#logOut()
  }

  /** Waits for what is still under way. */
  async leave(): Promise<void> {
    await Promise.all(this.#pending)
    this.#trading?.close()
    this.#public?.close()
  }

  async #logIn(): Promise<void> {
    this.#trading?.close()
    this.#trading = undefined
    this.#account = undefined
    const { result } = await this.page.logIn()
    if (result !== 'ok') await pause(AGAIN_MS)
  }

  /** In another tab, which ends the session of this one. Its socket stays until the server closes it. */
  async #logInAgain(): Promise<void> {
    const old = this.page.copy()
    const { began } = await this.page.logIn()
    if (began === undefined) return
    this.#account = undefined
    this.#pending.push(goOn(old, this.#over))
    this.#leaveSocket()
  }

  /** Another tab has the trading socket, and goes on with it. */
  #leaveSocket(): void {
    const socket = this.#trading
    this.#trading = undefined
    if (socket?.noted.closedAt === undefined && socket !== undefined)
      this.#pending.push(goOnTrading(socket, this.page.fleet, () => this.#buy(socket)))
  }

  async #read(): Promise<void> {
    const { result, body, session } = await this.page.ask({ kind: 'read', method: 'GET', path: ACCOUNTS })
    if (result === 'ok' && session === this.page.session) this.#account = /"account_id":"(\w+)"/.exec(body)?.[1]
  }

  async #trade(): Promise<void> {
    if (this.#trading !== undefined && this.#trading.noted.closedAt === undefined) return this.#buy(this.#trading)
    if (this.#account !== undefined)
      this.#trading = await openSocket(this.page, 'trading', `/ws/trading/${this.#account}`)
    if (this.#trading !== undefined) this.#subscribe(this.#trading)
  }

  /** Each request has a mark of its own, which nobody else may ever see. */
  #subscribe({ send }: OpenSocket): void {
    const mark = (): object => ({ req_id: ++this.#nth, passthrough: { of: `${this.page.name} ${this.#nth}` } })
    send({ ticks: 'R_100', subscribe: 1, ...mark() })
    send({ ticks: 'R_50', subscribe: 1, ...mark() })
    send({ ticks_history: 'R_75', count: 5, end: 'latest', subscribe: 1, ...mark() })
  }

  /** Each purchase is another one, so that it can be told where it went. */
  #buy({ send }: OpenSocket): void {
    const passthrough = { purchase: `${this.page.name}-b${this.#nth++}` }
    send({ buy: 1, price: 10, parameters: CONTRACT, req_id: this.#nth, passthrough })
  }

  async #watch(): Promise<void> {
    if (this.#public !== undefined && this.#public.noted.closedAt === undefined) return this.#public.send({ ping: 1 })
    this.#public = await openSocket(this.page, 'public', PUBLIC)
    if (this.#public !== undefined) this.#subscribe(this.#public)
  }

  /** Here, or at the provider. Another tab, which has not heard of it yet, goes on. */
  async #logOut(): Promise<void> {
    const { page } = this
    const { session } = page
    if (session === undefined) return
    const old = page.copy()
    this.#pending.push(goOn(old, this.#over))
    this.#leaveSocket()
    const isTold = page.fleet.plan.isOpenId === true && page.random() < AT_PROVIDER && (await logOutAtProvider(page))
    if (!isTold) {
      await logOut(page)
      this.#pending.push(repeatLogout(old))
    }
    page.forget(session)
    // The next login of this browser would end the session, too.
    if (isTold) await pause(AWAY_MS)
  }
}
