import { Worker } from 'node:worker_threads'
import type { BrowserTab } from '../browser-tab.ts'
import type { Page } from './page.ts'
import type { Act, Report, Shown, TabData } from './tab-script.ts'

let tabs = 0

/**
 * A tab of somebody's browser: a thread of its own in which the browser package runs, with what the tab keeps over a reload. It is one
 * of {@link Fleet.tabs} until it is closed.
 */
export class Tab implements BrowserTab {
  readonly user: string
  /** What the browser keeps for the tab. */
  readonly stored: Map<string, string>
  readonly #page: Page
  readonly #agent = `tab-${++tabs}.`
  readonly #frozen = new Int32Array(new SharedArrayBuffer(4))
  readonly #waiting = new Map<number, { readonly act: Act; readonly resolve: (shown: Shown | undefined) => void }>()
  readonly #sockets = new Map<number, { closedAt: number | undefined }>()
  #worker: Worker
  #reloading: Promise<void> | undefined
  #acts = 0

  /** Shows the page of the frontend. @param stored what a tab had of which this is a copy */
  constructor(page: Page, stored: ReadonlyMap<string, string> = new Map()) {
    this.user = page.name
    this.#page = page
    this.stored = new Map(stored)
    this.#worker = this.#loaded()
    page.fleet.tabs.add(this)
  }

  /** What the page shows after an act of its user; undefined if it was reloaded or closed before. */
  act(act: Act): Promise<Shown | undefined> {
    const nth = this.#acts++
    return new Promise((resolve) => {
      this.#waiting.set(nth, { act, resolve })
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread has no origin
      this.#worker.postMessage({ nth, act })
    })
  }

  /** Whether an order of its page is under way. */
  get isBusy(): boolean {
    return this.#waiting.values().some(({ act }) => act.is === 'transfer' || act.is === 'buy')
  }

  /** Whether the tab keeps the key of an order under this name. */
  remembers(name: string): boolean {
    return [...this.stored.keys()].some((key) => key.includes(`:${name}:`))
  }

  reload(): Promise<void> {
    return (this.#reloading ??= this.#reload().finally(() => (this.#reloading = undefined)))
  }

  async #reload(): Promise<void> {
    await this.#left()
    if (this.#page.fleet.tabs.has(this)) this.#worker = this.#loaded()
    // Whoever waited may act in the new page at once.
    this.#forget()
  }

  freeze(): () => void {
    Atomics.store(this.#frozen, 0, 1)
    void this.act({ is: 'freeze' })
    return () => {
      Atomics.store(this.#frozen, 0, 0)
      Atomics.notify(this.#frozen, 0)
    }
  }

  disconnect(isNoticed: boolean): () => void {
    const of = (opening: string): boolean => opening.toLowerCase().includes(`user-agent: ${this.#agent}`)
    const { instances } = this.#page.fleet
    const ends = instances.map(({ links }) => links.browsers.add({ of, holds: ['request', 'reply'] }))
    if (isNoticed) void this.act({ is: 'offline' })
    return () => {
      ends.forEach((end) => end())
      if (isNoticed) void this.act({ is: 'online' })
    }
  }

  async close(): Promise<void> {
    this.#page.fleet.tabs.delete(this)
    await this.#left()
    this.#forget()
  }

  #loaded(): Worker {
    const { fleet, cookies, name: user } = this.#page
    const { checkout, publicUrl, observer } = fleet
    const workerData: TabData = {
      ...{ user, checkout, publicUrl, cookies, agent: this.#agent, stored: this.stored, frozen: this.#frozen },
      behindMs: Number(process.hrtime.bigint()) / 1e6 - observer.now(),
    }
    const worker = new Worker(new URL('tab-script.ts', import.meta.url), { workerData })
    return worker.on('message', (report: Report) => this.#take(report))
  }

  /** What its script has reported before the end is taken, too. */
  async #left(): Promise<void> {
    await this.#worker.terminate()
    const { now } = this.#page.fleet.observer
    for (const socket of this.#sockets.values()) socket.closedAt ??= now()
    this.#sockets.clear()
  }

  #forget(): void {
    for (const { resolve } of this.#waiting.values()) resolve(undefined)
    this.#waiting.clear()
  }

  #take(report: Report): void {
    const { now, history } = this.#page.fleet.observer
    switch (report.is) {
      case 'shown':
        this.#waiting.get(report.nth)?.resolve(report.shown)
        return void this.#waiting.delete(report.nth)
      case 'stored':
        if (report.text === undefined) this.stored.delete(report.name)
        else this.stored.set(report.name, report.text)
        return
      case 'socket': {
        const socket = this.#sockets.get(report.nth)
        if (socket !== undefined) return void (socket.closedAt = now())
        const opened: (typeof history.pageSockets)[number] = { at: now(), closedAt: undefined }
        this.#sockets.set(report.nth, opened)
        return void history.pageSockets.push(opened)
      }
      case 'sent': {
        const { order, clickedAt, at } = report
        history.leavings.push({ user: this.user, order, clickedAt, at })
      }
    }
  }
}
