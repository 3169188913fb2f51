import { Listeners } from './listeners.ts'
import { SYMBOLS, type SymbolInfo } from './symbols.ts'

/** Two hours at a tick a second: enough for a chart, little enough to start at once. */
const HISTORY_TICKS = 7200
const YEAR_SECONDS = 365 * 24 * 60 * 60

export interface Tick {
  /** Whole seconds. Ticks faster than one a second share them. */
  epoch: number
  quote: number
}

/** One symbol with its past and its listeners. */
export class Instrument {
  readonly info: SymbolInfo
  readonly ticks = new Listeners<Tick>()
  readonly #history: Tick[] = []
  readonly #random: () => number
  #latest: Tick

  constructor(info: SymbolInfo, random: () => number, begins: number) {
    this.info = info
    this.#random = random
    this.#latest = { epoch: begins, quote: info.start }
    this.#history.push(this.#latest)
  }

  get latest(): Tick {
    return this.#latest
  }

  /** Oldest first; at least the last two hours' worth of ticks. */
  get history(): readonly Tick[] {
    return this.#history
  }

  advance(epoch: number): void {
    const { volatility, pipSize } = this.info
    const drift = volatility * Math.sqrt(1 / YEAR_SECONDS) * gaussian(this.#random)
    this.#latest = { epoch, quote: Number((this.#latest.quote * Math.exp(drift)).toFixed(pipSize)) }
    this.#history.push(this.#latest)
    if (this.#history.length > 2 * HISTORY_TICKS) this.#history.splice(0, HISTORY_TICKS)
    this.ticks.tell(this.#latest)
  }
}

/** All symbols, moving together. The same seed gives the same walk, whatever the time of day. */
export class Market {
  readonly tickMs: number
  readonly #instruments: ReadonlyMap<string, Instrument>
  #timer: NodeJS.Timeout | undefined

  constructor({ seed, tickMs }: { seed: number; tickMs: number }) {
    this.tickMs = tickMs
    const spacing = Math.max(1, Math.round(tickMs / 1000))
    const now = Math.floor(Date.now() / 1000)
    const begins = now - HISTORY_TICKS * spacing
    const instruments = SYMBOLS.map((info, index) => new Instrument(info, randomFrom(seed + index), begins))
    this.#instruments = new Map(instruments.map((instrument) => [instrument.info.code, instrument]))
    for (let epoch = begins + spacing; epoch < now; epoch += spacing) this.#advance(epoch)
    this.#schedule()
  }

  instruments(): Instrument[] {
    return [...this.#instruments.values()]
  }

  instrument(code: string): Instrument | undefined {
    return this.#instruments.get(code)
  }

  close(): void {
    clearTimeout(this.#timer)
  }

  /** On the full second (or its like), so that a tick's epoch is the second in which it is seen. */
  #schedule(): void {
    this.#timer = setTimeout(
      () => {
        this.#schedule()
        // Rounded: a timer may fire a moment early.
        this.#advance(Math.round(Date.now() / 1000))
      },
      this.tickMs - (Date.now() % this.tickMs),
    )
  }

  #advance(epoch: number): void {
    for (const instrument of this.#instruments.values()) instrument.advance(epoch)
  }
}

/** The mulberry32 generator: tiny, and the same on every machine. Numbers from 0 (included) to 1. */
function randomFrom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** A normally distributed number (Box and Muller). */
function gaussian(random: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
}
