/**
 * What a network does to everything that is sent.
 * - `up`: it arrives.
 * - `silent`: nothing arrives until the network is up again. Nobody is told.
 * - `down`: calls fail and connections close.
 * - `offline`: the same, and the browser reports that it is offline.
 */
export type NetworkState = 'up' | 'silent' | 'down' | 'offline'

/** Something that arrives or is lost. */
interface UnderWay {
  readonly pass: () => void
  readonly lose: () => void
}

/** The network between a page and its server. */
export class FakeNetwork {
  #state: NetworkState = 'up'
  #underWay: UnderWay[] = []

  get state(): NetworkState {
    return this.#state
  }

  /** Calls `pass` as soon as something arrives, or `lose` once the network is down. */
  carry(pass: () => void, lose: () => void): void {
    if (this.#state === 'up') pass()
    else if (this.#state === 'silent') this.#underWay.push({ pass, lose })
    else lose()
  }

  /** Changes the state, and tells the page what a browser would tell it. */
  set(state: NetworkState): void {
    const before = this.#state
    this.#state = state
    if (state === 'offline') setOnLine(false)
    else if (before === 'offline') setOnLine(undefined)
    if (state !== 'silent') {
      const underWay = this.#underWay
      this.#underWay = []
      for (const { pass, lose } of underWay) this.carry(pass, lose)
    }
    if (state === 'offline') dispatch('offline')
    // A page that waits for its next attempt reconnects at once.
    else if (state === 'up' && before !== 'up') withoutDelay(() => dispatch('online'))
  }
}

/** Calls back while no delay is random, so that what the client would do within a second it does at once. */
export function withoutDelay(call: () => void): void {
  const { random } = Math
  Math.random = () => 0
  try {
    call()
  } finally {
    Math.random = random
  }
}

/** Sets what the browser reports; undefined for what it reports by itself. */
function setOnLine(value: boolean | undefined): void {
  const { navigator } = globalThis as Partial<typeof globalThis>
  if (!navigator) return
  if (value === undefined) Reflect.deleteProperty(navigator, 'onLine')
  else Object.defineProperty(navigator, 'onLine', { configurable: true, value })
}

/** Dispatches an event of the page. Outside of a page there is none. */
function dispatch(name: string): void {
  const page = globalThis as Partial<typeof globalThis>
  page.dispatchEvent?.(new Event(name))
}
