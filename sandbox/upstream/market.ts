import { Listeners } from './listeners.ts'
import { SYMBOLS, type SymbolInfo } from './symbols.ts'

/** Two hours at one tick per second: enough for a chart, and fast to compute at the start. */
const HISTORY_TICKS = 7200
/** Ticks that are later than this are left out. */
const MAX_LATE_MS = 60_000
const YEAR_SECONDS = 365 * 24 * 60 * 60

export interface Tick {
  /** Epoch seconds. With more than one tick per second, several ticks have the same epoch. */
  epoch: number
  quote: number
}

/** A symbol with its history and listeners. */
export class Instrument {
  readonly info: SymbolInfo
  readonly ticks = new Listeners<Tick>()
  readonly #history: Tick[] = []
  readonly #random: () => number
  #latest: Tick

  constructor(info: SymbolInfo, random: () => number, startEpoch: number) {
    this.info = info
    this.#random = random
    this.#latest = { epoch: startEpoch, quote: info.start }
    this.#history.push(this.#latest)
  }

  get latest(): Tick {
    return this.#latest
  }

  /** At least the last 7200 ticks, oldest first. */
  get history(): readonly Tick[] {
    return this.#history
  }

  advance(epoch: number): void {
    const { volatility, pipSize } = this.info
    const drift = volatility * Math.sqrt(1 / YEAR_SECONDS) * gaussian(this.#random)
    this.#latest = { epoch, quote: Number((this.#latest.quote * Math.exp(drift)).toFixed(pipSize)) }
    this.#history.push(this.#latest)
    if (this.#history.length > 2 * HISTORY_TICKS) this.#history.splice(0, HISTORY_TICKS)
    this.ticks.notify(this.#latest)
  }
}

/** All symbols, which tick together. Prices are a random walk that depends on the seed only. */
export class Market {
  readonly tickMs: number
  readonly #instruments: ReadonlyMap<string, Instrument>
  /** The time of the latest tick, a multiple of `tickMs`. */
  #tickedMs: number
  #timer: NodeJS.Timeout | undefined

  constructor({ seed, tickMs }: { seed: number; tickMs: number }) {
    this.tickMs = tickMs
    const spacingMs = Math.max(1000, tickMs)
    this.#tickedMs = Date.now() - (Date.now() % tickMs)
    const startMs = this.#tickedMs - HISTORY_TICKS * spacingMs
    const start = epochOf(startMs)
    const instruments = SYMBOLS.map((info, index) => new Instrument(info, randomFrom(seed + index), start))
    this.#instruments = new Map(instruments.map((instrument) => [instrument.info.code, instrument]))
    for (let index = 1; index <= HISTORY_TICKS; index++) this.#advance(epochOf(startMs + index * spacingMs))
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

  /**
   * Ticks once at every multiple of `tickMs`, so that a tick is sent in the second of its epoch. A timer may fire early or
   * late, so the time of the tick before decides, not the clock alone.
   */
  #schedule(): void {
    this.#timer = setTimeout(
      () => {
        const now = Date.now()
        // A machine that slept has missed these ticks, as if the market had been closed.
        if (now - this.#tickedMs > MAX_LATE_MS) this.#tickedMs = now - (now % this.tickMs) - this.tickMs
        for (; this.#tickedMs + this.tickMs <= now; this.#advance(epochOf(this.#tickedMs)))
          this.#tickedMs += this.tickMs
        this.#schedule()
      },
      // Node.js warns of a negative time, which a slow machine would leave here.
      Math.max(0, this.#tickedMs + this.tickMs - Date.now()),
    )
  }

  #advance(epoch: number): void {
    for (const instrument of this.#instruments.values()) instrument.advance(epoch)
  }
}

function epochOf(ms: number): number {
  return Math.floor(ms / 1000)
}

/** The mulberry32 generator, which is the same on every machine. @returns numbers in [0, 1) */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/** A normally distributed number (Box–Muller transform). */
function gaussian(random: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
}
