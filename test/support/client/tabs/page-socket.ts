import type { Browser } from './browser.ts'
import type { ServedSession, ServedSocket } from './session-service.ts'
import type { Tab } from './tab.ts'

/** How long a message is on its way, and how long a late one is. */
export const WAY_MS = 20
export const LATE_MS = 6000

/** A session socket of a page, at both of its ends. */
export class PageSocket implements ServedSocket {
  readyState = 0
  readonly bufferedAmount = 0
  onopen: (() => void) | null = null
  onmessage: ((event: { data: string }) => void) | null = null
  onclose: ((event: { code: number; reason: string }) => void) | null = null
  readonly tab: Tab
  readonly session: ServedSession | undefined
  /** True once nothing arrives on the connection any more, which nobody notices. */
  isDead = false
  readonly #browser: Browser
  #arrivesAt = 0

  constructor(browser: Browser, tab: Tab) {
    this.#browser = browser
    this.tab = tab
    this.session = browser.cookie
  }

  #arrives(call: () => void, ms = WAY_MS): void {
    const { time } = this.#browser
    // What is sent on one connection arrives in order.
    this.#arrivesAt = Math.max(this.#arrivesAt, time.now + ms)
    time.later(this.#arrivesAt - time.now, () => this.readyState < 2 && !this.isDead && call(), this.tab)
  }

  say(event: object): void {
    const fault = this.#browser.strikes()
    if (fault === 'lost') this.isDead = true
    if (fault === 'broken') return this.breaks()
    const tell = (): void => this.onmessage?.({ data: JSON.stringify(event) })
    this.#arrives(tell, fault === 'late' ? LATE_MS : WAY_MS)
    if (fault === 'twice') this.#arrives(tell)
  }

  open(): void {
    this.#arrives(() => {
      this.readyState = 1
      this.onopen?.()
    })
  }

  close(code = 1000, reason = ''): void {
    const { service } = this.#browser
    service.sockets.delete(this)
    if (code === 1000) this.readyState = 3
    else this.#arrives(() => this.#closed(code, reason))
  }

  /** The connection breaks, which both sides notice. */
  breaks(): void {
    this.#browser.service.sockets.delete(this)
    this.#arrives(() => this.#closed(1006, ''), 0)
  }

  #closed(code: number, reason: string): void {
    this.readyState = 3
    this.onclose?.({ code, reason })
  }
}
