import { setTimeout as delay } from 'node:timers/promises'
import { until } from '../../time/until.ts'
import { Dice } from './dice.ts'
import { EQUAL_SYMBOLS, SYMBOLS } from './market.ts'
import { ModelBrowser, type Place } from './model-browser.ts'
import type { RandomUpstream } from './random-upstream.ts'
import { type Action, type Script, type Step, textFor } from './script.ts'

/** The longest pause after a step where nobody waits for what it brings. */
const STEP_MS = 4

/** A server between an upstream and browsers. */
export interface SearchWorld {
  readonly place: Place
  readonly upstream: RandomUpstream
  /** How long browsers wait for messages that they are owed. */
  readonly patienceMs: number
}

/** Plays a script. @returns what is wrong: nothing, as a rule */
export async function play(script: Script, world: SearchWorld): Promise<string[]> {
  const session = new Session(script, world)
  try {
    return await session.play()
  } finally {
    session.leave()
  }
}

class Session {
  readonly #script: Script
  readonly #world: SearchWorld
  readonly #isShared: boolean
  readonly #losses: boolean
  readonly #all: ModelBrowser[] = []
  readonly #present: ModelBrowser[]
  #reqIds = 0

  constructor(script: Script, world: SearchWorld) {
    this.#script = script
    this.#world = world
    this.#isShared = world.place.behaviour.clock === 'shared'
    this.#losses = world.place.behaviour.losses
    world.upstream.begin(script.seed)
    this.#present = Array.from({ length: script.browsers }, () => this.#join())
  }

  async play(): Promise<string[]> {
    const { steps, seed } = this.#script
    await Promise.all(this.#present.map((browser) => browser.opened()))
    const pauses = new Dice(seed).of('pauses')
    for (const [number, step] of steps.entries()) {
      await this.#step(step)
      if (!this.#isShared) await this.#pass(pauses())
      else if (!(await this.#quiet())) return [`step ${number}`, ...this.#faults]
      else this.#pause(step)
      if (this.#faults.length > 0) return [`step ${number}`, ...this.#faults]
    }
    await this.#last()
    return this.#faults
  }

  leave(): void {
    if (!this.#isShared) this.#world.upstream.calm()
    for (const browser of this.#all) browser.leave()
  }

  get #faults(): string[] {
    return this.#all.flatMap(({ allFaults }) => allFaults)
  }

  get #late(): string[] {
    return this.#all.filter(({ socket }) => !socket.isPaused).flatMap(({ late }) => late)
  }

  async #step(step: Step): Promise<void> {
    if (!('do' in step)) {
      for (const action of step) await this.#act(action)
      return
    }
    this.#world.upstream.obey(step)
    // Browsers alone would not tell: a stream may run for browsers that read nothing, or for nobody, and whoever joins it next
    // gets its newest message.
    if (this.#isShared) await this.#world.upstream.settled()
  }

  /** Has some time pass after a third of the steps, or after each if connections break. */
  async #pass(dice: number): Promise<void> {
    if (this.#losses || dice < 0.3) await delay(dice * STEP_MS)
  }

  /** Waits until every browser that reads has what it is owed. @returns false if something does not come */
  async #quiet(): Promise<boolean> {
    const isQuiet = (): boolean => this.#late.length === 0 || this.#faults.length > 0
    await until(isQuiet, 'browsers have all', this.#world.patienceMs).catch(() => undefined)
    const late = this.#late
    // After a fault nobody waits any longer, and what has not come yet says nothing.
    if (late.length > 0 && this.#faults.length === 0) this.#all[0]?.faults.push(late.slice(0, 5).join('\n'))
    return late.length === 0
  }

  /** Lets all read, moves all prices once more and asks for the time, so that what is too much is seen. */
  async #last(): Promise<void> {
    const { upstream } = this.#world
    for (const { socket } of this.#all) socket.resume()
    if (!this.#isShared) {
      upstream.calm()
      // A history that ends in the middle of a second may be continued only after that.
      upstream.obey({ do: 'move', symbols: SYMBOLS, times: 2 })
    }
    if (!(await this.#quiet())) return
    upstream.obey({ do: 'move', symbols: SYMBOLS, times: 1 })
    // The last second and candle are passed.
    upstream.obey({ do: 'move', symbols: EQUAL_SYMBOLS, times: 3, seconds: 200 })
    if (this.#isShared) await upstream.settled()
    for (const browser of this.#present)
      if (browser.isOpen) browser.send(`{"time":1,"req_id":${++this.#reqIds + 999_999}}`)
    await this.#quiet()
  }

  async #act(action: Action): Promise<void> {
    if (action.do === 'sendAll') {
      for (const at of this.#present.keys()) this.#send(at, action)
      return
    }
    const at = action.browser % this.#present.length
    let browser = this.#present[at]
    if (browser === undefined) return
    if (action.do === 'leave' || action.do === 'reconnect') browser.leave(action.do === 'leave')
    if (browser.end !== undefined || browser.isLeaving) {
      browser = this.#present[at] = this.#join()
      if (!this.#losses) await browser.opened()
    }
    if (action.do === 'send') this.#send(at, action)
    if (action.do === 'resume') browser.socket.resume()
    if (action.do === 'pause' && !this.#isShared) browser.socket.pause()
    if (action.do === 'forget') await this.#forget(at, browser, action)
  }

  /** Has browsers read no more once all is quiet. They ask nothing meanwhile, since nobody could tell when that is answered. */
  #pause(step: Step): void {
    if ('do' in step) return
    for (const action of step)
      if (action.do === 'pause') this.#present[action.browser % this.#present.length]?.socket.pause()
  }

  #send(at: number, { text, read }: { readonly text: string; readonly read: string }): void {
    const browser = this.#present[at]
    if (browser?.isOpen !== true || browser.socket.isPaused) return
    const asked = textFor(at, this.#losses && at % 7 === 0 ? read : text, !this.#losses)
    browser.send(this.#isShared ? asked : asked.replace(/\}$/, `,"req_id":${++this.#reqIds}}`))
  }

  async #forget(at: number, browser: ModelBrowser, { stream, isForeign }: Action & { do: 'forget' }): Promise<void> {
    // A stream that lingers keeps its id when it is subscribed to again.
    if (this.#isShared) await this.#quiet()
    const neighbour = this.#present[(at + 1) % this.#present.length]?.book ?? browser.book
    const ids = this.#isShared ? [...(isForeign ? neighbour : browser.book).ids] : browser.book.liveIds
    const id = ids[stream % ids.length]
    if (id !== undefined) this.#send(at, { text: `{"forget":"${id}"}`, read: '' })
  }

  #join(): ModelBrowser {
    const browser = new ModelBrowser(this.#world.place)
    this.#all.push(browser)
    return browser
  }
}
