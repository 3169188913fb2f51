import type { ActiveSession, EndReason, SessionState } from '../../../../client/dist/client.js'
import { Browser, type MessageFault } from './browser.ts'
import type { ServedSession } from './session-service.ts'
import type { Tab } from './tab.ts'

/** What happens to a browser. */
export type Step =
  | {
      readonly does: 'log in' | 'log out' | 'call' | 'extend' | 'check' | 'close' | 'show' | 'hide' | 'freeze'
      readonly tab: number
    }
  | { readonly does: 'end'; readonly reason: EndReason }
  | { readonly does: 'open' | 'go offline' | 'go online' | 'stop server' | 'start server' | 'announce' | 'pass on' }
  | { readonly does: 'refuse'; readonly code: number; readonly reason: string }
  | { readonly does: 'lose'; readonly code: number }
  | { readonly does: 'fault'; readonly is: MessageFault; readonly in: number }
  | { readonly does: 'wait' | 'sleep' | 'set clock'; readonly ms: number }

/** How long a tab may show the user of a session that has ended: with nothing in its way, and after any trouble. */
const SOON_MS = 9000
const LONG_MS = 340_000

const keyOf = (state: SessionState): string | undefined => {
  const { last, session } = state as Partial<ActiveSession> & { last?: ActiveSession }
  return last?.session ?? session
}

/** Walks through what happens to the tabs of a browser, and notes what is wrong. */
export class TabJourney {
  readonly browser: Browser
  readonly wrong: string[] = []
  readonly #sessions = new Map<string, ServedSession>()
  #landedAt = 0
  #troubleAt = -Infinity
  #movedAt = 0
  readonly #names = new Map<Tab, string>()
  readonly #looked = new Map<Tab, number>()
  #logins = 0
  #isLanding = false
  /** Whether something was about to happen to a message when the journey was looked at last. */
  #isFaultDue = false

  /** @param hasLocks whether the tabs share what they know; without, a tab that knows of no session asks when it is looked at */
  constructor(hasLocks = true, count = 3) {
    this.browser = new Browser(hasLocks)
    this.browser.onTold = (tab) => this.#told(tab)
    for (let tab = 0; tab < count; tab++) this.#open()
  }

  get truth(): ServedSession | undefined {
    const { cookie, service } = this.browser
    return service.isLive(cookie) ? cookie : undefined
  }

  async step(step: Step): Promise<void> {
    const { browser } = this
    const { time, service } = browser
    const all = [...browser.tabs]
    const tab = 'tab' in step ? all[step.tab % all.length] : undefined
    const isAwake = tab?.is === 'shown'
    switch (step.does) {
      case 'wait':
        return this.#pass(step.ms, step.ms > 60_000 ? 5000 : 1000)
      case 'pass on':
        return this.#pass(30)
      case 'sleep':
        await browser.sleep(step.ms)
        this.#movedAt = time.now
        // A clock that was set back by as much shows a page no sleep.
        return time.wrongMs === 0 ? undefined : this.#trouble()
      case 'set clock':
        time.wrongMs += step.ms
        return this.#trouble()
      case 'open':
        if (all.length < 5) this.#open()
        return
      case 'close':
        if (tab && all.length > 1) browser.discard(tab)
        return this.#turn()
      case 'log in': {
        if (!tab || !browser.isOnline || !browser.isServerUp) return
        const name = this.#names.get(tab)
        // A socket of the session before is told a second after its end, and the page asks for two seconds more.
        this.#isLanding = this.truth !== undefined
        const next = await browser.logIn(tab, `user ${++this.#logins}`, this.#logins % 2 ? 20 : 2500)
        this.#isLanding = false
        if (browser.cookie) this.#sessions.set(browser.cookie.tag, browser.cookie)
        this.#landedAt = time.now
        this.#names.set(next, `${name}'`)
        return
      }
      case 'log out':
        if (isAwake) void tab.client.logout().catch(() => undefined)
        this.#movedAt = time.now
        return
      case 'extend':
        if (isAwake) void tab.client.session.extend().catch(() => undefined)
        return
      case 'call':
        if (isAwake) void tab.client.api('/wallet/v1/wallets').catch(() => undefined)
        return
      case 'check':
        if (isAwake) void tab.client.session.check()
        return
      case 'hide':
        if (isAwake) browser.hide(tab)
        this.#movedAt = time.now
        return this.#turn()
      case 'freeze':
        if (isAwake) tab.is = 'frozen'
        this.#turn()
        return this.#trouble()
      case 'show':
        if (tab && !isAwake) browser.show(tab)
        this.#movedAt = time.now
        return
      case 'end':
        if (browser.cookie) service.end(browser.cookie, step.reason)
        return
      case 'announce':
        return service.announce(service.notice ? undefined : { message: 'news' })
      case 'go offline':
      case 'go online':
        browser.setOnline(step.does === 'go online')
        return this.#trouble()
      case 'stop server':
      case 'start server':
        browser.isServerUp = step.does === 'start server'
        if (!browser.isServerUp) for (const socket of browser.sockets) socket.breaks()
        return this.#trouble()
      case 'refuse':
        browser.refusal = step.code ? [step.code, step.reason] : undefined
        return this.#trouble()
      case 'lose':
        for (const socket of [...service.sockets]) socket.close(step.code, '')
        return this.#trouble()
      case 'fault':
        browser.fault = { at: browser.messages + step.in, is: step.is }
        return this.#trouble()
    }
  }

  /** Undoes all trouble, and looks whether all is right in the end. */
  async end(): Promise<void> {
    const { browser } = this
    browser.refusal = browser.fault = undefined
    browser.isServerUp = true
    browser.setOnline(true)
    for (const tab of browser.tabs) browser.show(tab)
    this.#trouble()
    await this.#pass(LONG_MS + 5000, 5000)
    this.#look('in the end')
    const { truth } = this
    const open = [...browser.sockets].filter(({ readyState }) => readyState < 2).length
    if (open !== (truth ? (browser.hasLocks ? 1 : browser.tabs.size) : 0))
      this.wrong.push(`${open} sockets are open while ${truth?.tag}`)
    for (const [tab, name] of this.#names) {
      if (!browser.tabs.has(tab)) continue
      const state = tab.client.session.get() as ActiveSession
      if (keyOf(state) !== truth?.tag) this.wrong.push(`${name} shows ${keyOf(state)} in the end, not ${truth?.tag}`)
      if (!truth || state.status !== 'active') continue
      for (const [at, right] of [
        [state.expiresAt, truth.expiresAt],
        [state.idleExpiresAt, truth.idleAt],
      ] as const)
        if (Math.abs(at - right - browser.time.wrongMs) > 3100)
          this.wrong.push(`${name} is wrong by ${at - right - browser.time.wrongMs} ms about the end`)
      if (JSON.stringify(tab.client.session.get().notice) !== JSON.stringify(browser.service.notice))
        this.wrong.push(`${name} has another notice`)
    }
    for (const [tab, name] of this.#names) {
      if (!browser.tabs.has(tab)) continue
      const { calls, told, once, counted } = tab
      if (once > 1 || counted !== told.length)
        this.wrong.push(`${name} told ${told.length}, ${once} and ${counted} times`)
      tab.client.close()
      const left = [browser.time.of(tab), tab.channels.size, ...[...tab.listeners.values()].map((all) => all.size)]
      if (left.some((count) => count > 0)) this.wrong.push(`${name} leaves ${left.join()}`)
      if (tab.calls > calls) this.wrong.push(`${name} calls after its end`)
    }
    const faults = new Set<unknown>([...this.#names.keys()].map(({ fault }) => fault))
    const errors = browser.errors.filter((error) => !faults.has(error))
    if (errors.length > 0) this.wrong.push(String(errors[0]))
  }

  #open(): void {
    const tab = this.browser.openTab()
    this.#names.set(tab, `tab ${this.#names.size}`)
    this.#movedAt = this.browser.time.now
  }

  /** The user turns to another tab: the one before may have been the only one that knew of a login. */
  #turn(): void {
    ;[...this.browser.tabs].find(({ is }) => is === 'shown')?.event('visibilitychange')
  }

  #trouble(): void {
    this.#troubleAt = this.browser.time.now
  }

  async #pass(ms: number, everyMs = 1000): Promise<void> {
    for (let left = ms; left > 0; left -= everyMs) {
      await this.browser.time.pass(Math.min(left, everyMs))
      this.#look('meanwhile')
    }
  }

  #look(when: string): void {
    const { browser, truth } = this
    const { now } = browser.time
    const isFaultDue = browser.fault !== undefined && browser.fault.at >= browser.messages
    const isTroubled =
      !browser.isOnline ||
      !browser.isServerUp ||
      browser.refusal !== undefined ||
      this.#isFaultDue ||
      isFaultDue ||
      [...browser.tabs].some(({ is }) => is === 'frozen')
    if (isTroubled) this.#troubleAt = now
    this.#isFaultDue = isFaultDue
    for (const tab of browser.tabs) {
      if (tab.is !== 'shown') continue
      const { shows } = tab
      if (shows === truth?.tag || (!browser.hasLocks && shows === undefined)) continue
      const since = Math.max(this.#sessions.get(shows ?? '')?.endedAt ?? 0, truth ? this.#landedAt : 0, this.#movedAt)
      const isWrong =
        now - this.#troubleAt < LONG_MS * 2 ? now - Math.max(since, this.#troubleAt) > LONG_MS : now - since > SOON_MS
      if (isWrong && this.#looked.get(tab) !== since) {
        this.#looked.set(tab, since)
        this.wrong.push(
          `${this.#names.get(tab)} shows ${shows} ${when}, ${now - since} ms after that was wrong; it is ${truth?.tag}`,
        )
      }
    }
  }

  #told(tab: Tab): void {
    const [before, now] = [tab.told.at(-2)?.state ?? { status: 'unknown' as const }, tab.told.at(-1)]
    if (!now || tab.is === 'gone') return
    const name = `${this.#names.get(tab)} of ${before.status} to ${now.state.status}`
    if (JSON.stringify(before) === JSON.stringify(now.state)) this.wrong.push(`${name} is told twice`)
    if (now.isOther !== (keyOf(before) !== keyOf(now.state))) this.wrong.push(`${name} is told ${now.isOther}`)
    const { reason } = now.state as { reason?: EndReason }
    const isUndisturbed = this.browser.time.now - Math.max(this.#troubleAt + LONG_MS, this.#movedAt) > LONG_MS
    if (/idle|expired/.test(reason ?? '') && 'expiring' in before && !before.expiring && isUndisturbed)
      this.wrong.push(`${name}: its end was not announced`)
    if (now.state.status === 'anonymous' && keyOf(before) && this.#isLanding && isUndisturbed)
      this.wrong.push(`${name} while a login lands`)
    const shown = this.#sessions.get(keyOf(before) ?? '')
    if (now.state.status === 'anonymous' && shown && this.browser.service.isLive(shown))
      this.wrong.push(`${name}: it lives`)
    if (now.state.status !== 'active' || !now.isOther) return
    const next = now.state.session
    const session = this.#sessions.get(next)
    if (session?.endedAt === undefined) return
    // Only what was asked before the end can say so.
    const endedMs = this.browser.time.now - session.endedAt
    if (endedMs > 10_100 || tab.told.slice(0, -1).some(({ state }) => keyOf(state) === next))
      this.wrong.push(`${name}, ${endedMs} ms after its end`)
  }
}
