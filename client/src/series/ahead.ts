import { onPage } from '../core/base/page.ts'
import type { SeriesSocket } from '../core/sockets/series-shape.ts'

/** How far a point may be ahead of the clock of the server, besides the length of a candle. */
const MARGIN_S = 60
/** So many points in a row that are ahead show that the clock is wrong, rather than the points. */
const MANY = 3
/** A clock that may be off by more has been disturbed: it was set, or the machine slept. */
const MAX_ERROR_MS = 4000
/** How often the clock is measured, at most. */
const MEASURE_MS = 60_000

/** A chart that begins within this time after the last one has missed nothing of the page. */
const GRACE_MS = 1000
/** The clock is looked at this often, whatever it has said. */
const MAX_WAIT_MS = 3_600_000

/** What is known of a clock, in milliseconds of `performance.now()`. */
interface Known {
  /** When it was asked to be measured. */
  askedAt: number
  /** When the page was last offline or away. */
  disturbedAt: number
  /** How many charts look at it, and how these stop listening to the page. */
  users: number
  leavePage?: () => void
  /** When one of them has ended last. */
  leftAt: number
}

/** By clock: the charts of a page share one, and listen to the page together. */
const clocks = new WeakMap<() => unknown, Known>()
/** The clock of a socket that has none: no point is ahead of it. */
const none = (): undefined => undefined

/** @param signal ends the use */
function knownOf(signal: AbortSignal, clock: () => unknown = none): Known {
  const now = performance.now()
  const known: Known = clocks.get(clock) ?? { askedAt: -Infinity, disturbedAt: -Infinity, users: 0, leftAt: now }
  clocks.set(clock, known)
  if (known.users++ === 0) {
    // Nobody has listened to the page since. A page that changes the symbol of its chart ends it, and begins another at once.
    if (now - known.leftAt > GRACE_MS) {
      known.disturbedAt = now
      known.askedAt = -Infinity
    }
    known.leavePage = onPage((event) => {
      if (event !== 'visibilitychange') known.disturbedAt = performance.now()
    })
  }
  signal.addEventListener('abort', () => {
    known.leftAt = performance.now()
    if (--known.users === 0) known.leavePage?.()
  })
  return known
}

/** Tells which points are ahead of the clock of the server: upstream may send one of another time. */
export class Ahead {
  readonly #socket: SeriesSocket
  readonly #seconds: number
  readonly #signal: AbortSignal
  readonly #onMeasured: () => void
  readonly #known: Known
  #inRow = 0

  /** @param seconds the length of a candle, 0 for prices */
  constructor(socket: SeriesSocket, seconds: number, signal: AbortSignal, onMeasured: () => void) {
    this.#socket = socket
    this.#seconds = seconds
    this.#signal = signal
    this.#onMeasured = onMeasured
    this.#known = knownOf(signal, socket.serverNow)
  }

  /** Notes that points have arrived. */
  note(points: readonly { readonly epoch: number }[]): void {
    const latest = this.#latest()
    for (const { epoch } of points) {
      this.#inRow = epoch > latest ? this.#inRow + 1 : 0
      if (this.#inRow === MANY) this.#measure()
    }
  }

  /** The points that are shown now, and those that are left out until their time. */
  split<P extends { readonly epoch: number }>(
    points: readonly P[],
  ): readonly [shown: readonly P[], later: readonly P[]] {
    const latest = this.#inRow < MANY ? this.#latest() : Infinity
    return [points.filter(({ epoch }) => epoch <= latest), points.filter(({ epoch }) => epoch > latest)]
  }

  /** How long to wait until a point that is left out may be shown, in milliseconds. */
  waitMs({ epoch }: { readonly epoch: number }): number {
    return Math.min(Math.max(epoch - this.#latest(), 0) * 1000, MAX_WAIT_MS) + 1000
  }

  #latest(): number {
    const time = this.#socket.serverNow?.()
    if (time && time.errorMs < MAX_ERROR_MS && time.measuredAt > this.#known.disturbedAt) {
      return (time.now + time.errorMs) / 1000 + this.#seconds + MARGIN_S
    }
    this.#measure()
    return Infinity
  }

  #measure(): void {
    const known = this.#known
    const now = performance.now()
    if (!this.#socket.serverNow || now - known.askedAt < MEASURE_MS) return
    known.askedAt = now
    // The socket tells the clock. Without an answer the points are shown, as before. Another chart asks in place of one that has ended.
    this.#socket.request({ time: 1 } as never, { signal: this.#signal }).then(this.#onMeasured, () => {
      if (this.#signal.aborted) known.askedAt = -Infinity
    })
  }
}
