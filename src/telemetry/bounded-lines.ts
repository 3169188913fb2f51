import type { FastifyBaseLogger } from 'fastify'
import { symbols } from 'pino'
import { untraced } from './traces/span.ts'

/** Kinds of lines that are counted separately. Any others are counted together. */
const MAX_KINDS = 100

/** A line of the log that may stand for several events of its kind. */
interface BoundedLine {
  /** Tells its kind from others. */
  readonly id: string
  readonly write: (count: number) => void
}

interface Kind {
  /** How many lines may still be written at once. */
  left: number
  /** The newest of the events since the last line, so that the next line names its request. */
  newest: BoundedLine
  /** Events since the last line. */
  unwritten: number
  timer: NodeJS.Timeout
}

const tables: BoundedLines[] = []

/**
 * Bounds how many lines a kind of event can write, since strangers and failing services cause events at will: a few lines at once,
 * then one line for each interval in which there were more. A kind is forgotten after an interval without an event.
 */
export class BoundedLines {
  readonly #atOnce: number
  readonly #everyMs: number
  /** By the destination of the lines: a logger and its children share the kinds. */
  readonly #kinds = new WeakMap<object, Map<string, Kind>>()

  constructor({ atOnce, everyMs }: { readonly atOnce: number; readonly everyMs: number }) {
    this.#atOnce = atOnce
    this.#everyMs = everyMs
    tables.push(this)
  }

  /**
   * Writes a line for an event, now or later.
   * @param others stands for the event where there are too many kinds
   */
  add(log: FastifyBaseLogger, line: BoundedLine, others: BoundedLine = { ...line, id: 'others' }): void {
    const kinds = this.#kindsOf(log)
    const shown = kinds.has(line.id) || kinds.size < MAX_KINDS ? line : others
    const kind = kinds.get(shown.id) ?? this.#begin(kinds, shown)
    if (kind.left > 0) {
      kind.left--
      return shown.write(1)
    }
    kind.unwritten++
    kind.newest = shown
  }

  /** Writes the lines whose events are only counted so far. */
  flush(log: FastifyBaseLogger): void {
    const kinds = this.#kindsOf(log)
    for (const kind of kinds.values()) {
      clearInterval(kind.timer)
      if (kind.unwritten > 0) kind.newest.write(kind.unwritten)
    }
    kinds.clear()
  }

  #begin(kinds: Map<string, Kind>, line: BoundedLine): Kind {
    const kind: Kind = {
      left: this.#atOnce,
      newest: line,
      unwritten: 0,
      // A line that stands for several events belongs to none of their traces.
      timer: untraced(() => setInterval(() => this.#due(kinds, line.id, kind), this.#everyMs).unref()),
    }
    kinds.set(line.id, kind)
    return kind
  }

  #due(kinds: Map<string, Kind>, id: string, kind: Kind): void {
    if (kind.unwritten > 0) {
      kind.newest.write(kind.unwritten)
      kind.unwritten = 0
    } else {
      clearInterval(kind.timer)
      kinds.delete(id)
    }
  }

  #kindsOf(log: FastifyBaseLogger & { readonly [symbols.streamSym]?: object }): Map<string, Kind> {
    const destination = log[symbols.streamSym] ?? log
    let kinds = this.#kinds.get(destination)
    if (kinds === undefined) this.#kinds.set(destination, (kinds = new Map<string, Kind>()))
    return kinds
  }
}

/** Writes all lines of a log that are still only counted, since the process is about to end. */
export function flushBoundedLines(log: FastifyBaseLogger): void {
  for (const table of tables) table.flush(log)
}
