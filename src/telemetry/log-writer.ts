import { write, writeSync } from 'node:fs'
import { within } from '../time/within.ts'

/** A line waits no longer than this to be written together with others. */
const FLUSH_MS = 250
/** By then a line is written, unless nobody reads the log. */
export const WRITTEN_MS = 2 * FLUSH_MS
/** Beyond this, lines are dropped. Otherwise they would fill the memory when nothing reads the log. */
const MAX_WAITING_BYTES = 16 * 1_048_576
/** Delay before another write to a full non-blocking pipe. */
const RETRY_MS = 100
/** At the end of the process a reader may be slow for this long, and one that has read nothing for as long gets a moment. */
const PATIENCE_MS = 2000
const MOMENT_MS = 100
/** UTF-8 needs at most this many bytes for a UTF-16 code unit. */
const MAX_BYTES_PER_UNIT = 3

/**
 * Writes lines to a file descriptor, many at a time. The writes run on Node's thread pool, so a reader that is slow or
 * hangs does not block the process. Lines are copied into a buffer at once, since keeping them as strings costs several
 * times as much. It has no flushSync: pino would call that for every fatal line, and it would wait forever if nothing
 * reads the log.
 */
export class LogWriter {
  readonly #fd: number
  readonly #chunkBytes: number
  readonly #onDropped: (lines: number) => void
  /** Whole lines that no write has been started for. */
  #filling: Buffer
  #filled = 0
  /** Chunks to write. The first one is being written. */
  readonly #waiting: Buffer[] = []
  #waitingBytes = 0
  /** Lines dropped since the last report. */
  #dropped = 0
  #droppedInTotal = 0
  /** Whether the last write failed: the line before the next one may be cut, and a report would be lost, too. */
  #isFailing = false
  /** When the log was last read: a write began or made progress (monotonic ms). */
  #readAt = 0
  /** Set while the oldest line of the filling chunk may wait for more. */
  #timer: NodeJS.Timeout | undefined
  readonly #flushes: { readonly last: Buffer; readonly done: () => void }[] = []

  /**
   * @param chunkBytes the size of a write, unless a single line is longer; only a full disk cuts lines in two
   * @param onDropped receives the number of dropped lines as soon as there is room for a line again, or the disk has some
   */
  constructor(fd: number, chunkBytes: number, onDropped: (lines: number) => void) {
    this.#fd = fd
    this.#chunkBytes = chunkBytes
    this.#onDropped = onDropped
    this.#filling = Buffer.allocUnsafeSlow(chunkBytes)
    process.once('exit', () => this.#writeLast())
  }

  /** The number of lines lost so far, because there was no room for them or they could not be written. */
  get droppedLines(): number {
    return this.#droppedInTotal
  }

  /** The memory that lines take which are not written yet. Beyond 16 MiB lines are dropped. */
  get waitingBytes(): number {
    return this.#waitingBytes + this.#filled
  }

  /** Adds a line, which includes its `\n`. Never blocks and never throws. */
  write(line: string): void {
    if (this.#waitingBytes > MAX_WAITING_BYTES) return this.#drop(1)
    if (this.#dropped > 0 && !this.#isFailing) this.#reportDropped()
    const mostBytes = line.length * MAX_BYTES_PER_UNIT
    if (this.#filled + mostBytes > this.#chunkBytes) {
      this.#send()
      if (mostBytes > this.#chunkBytes) return this.#enqueue(chunkOf(line))
    }
    if (this.#filled === 0) this.#timer = setTimeout(() => this.#due(), FLUSH_MS).unref()
    this.#filled += this.#filling.write(line, this.#filled)
  }

  /** Calls back when all lines so far have been written or have failed. */
  flush(done: () => void = () => undefined): void {
    this.#send()
    const last = this.#waiting.at(-1)
    if (last === undefined) done()
    else this.#flushes.push({ last, done })
  }

  /**
   * Waits until all lines are written, but not for a reader that hangs.
   * @param patienceMs for how long a reader may be slow
   * @returns how many lines are lost with this process, at most: of a write that hangs, a part may have been read. The
   *   number includes lines that were dropped before, and that no line of the log has reported
   */
  async end(patienceMs = PATIENCE_MS): Promise<number> {
    const told = this.#droppedInTotal - this.#dropped
    const stalledMs = this.#waiting.length === 0 ? 0 : performance.now() - this.#readAt
    const endsAt = performance.now() + Math.max(MOMENT_MS, patienceMs - stalledMs)
    // More lines may come meanwhile.
    while (this.waitingBytes > 0 && performance.now() < endsAt) {
      await within(endsAt - performance.now(), new Promise<void>((resolve) => this.flush(resolve)))
    }
    const unwritten = [...this.#waiting, this.#filling.subarray(0, this.#filled)]
    return unwritten.reduce((lines, chunk) => lines + linesOf(chunk), this.#droppedInTotal - told)
  }

  #due(): void {
    this.#timer = undefined
    // Otherwise the end of the current write sends the chunk, which is fuller by then.
    if (this.#waiting.length === 0) this.#send()
  }

  #send(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#filled === 0) return
    const chunk = this.#filling.subarray(0, this.#filled)
    this.#filling = Buffer.allocUnsafeSlow(this.#chunkBytes)
    this.#filled = 0
    this.#enqueue(chunk)
  }

  #enqueue(chunk: Buffer): void {
    this.#waitingBytes += chunk.buffer.byteLength
    if (this.#waiting.push(chunk) > 1) return
    this.#readAt = performance.now()
    this.#begin(chunk)
  }

  /** Writes a chunk, on a line of its own. */
  #begin(chunk: Buffer): void {
    if (!this.#isFailing) return this.#writeOn(chunk, 0)
    write(this.#fd, '\n', (error) => {
      this.#isFailing = error !== null
      this.#writeOn(chunk, 0)
    })
  }

  #writeOn(chunk: Buffer, from: number): void {
    write(this.#fd, chunk, from, chunk.length - from, null, (error, bytes) => {
      if (error?.code === 'EAGAIN') return void setTimeout(() => this.#writeOn(chunk, from), RETRY_MS)
      this.#readAt = performance.now()
      // The rest of the chunk is lost, for instance because the disk is full or the reader has gone.
      if (error === null && from + bytes < chunk.length) return this.#writeOn(chunk, from + bytes)
      if (error !== null) this.#drop(linesOf(chunk.subarray(from)))
      this.#isFailing = error !== null
      this.#done(chunk)
    })
  }

  #done(chunk: Buffer): void {
    this.#waiting.shift()
    this.#waitingBytes -= chunk.buffer.byteLength
    const [next] = this.#waiting
    if (next !== undefined) this.#begin(next)
    else if (this.#timer === undefined) this.#send()
    while (this.#flushes[0]?.last === chunk) this.#flushes.shift()?.done()
  }

  #drop(lines: number): void {
    this.#dropped += lines
    this.#droppedInTotal += lines
  }

  #reportDropped(): void {
    const lines = this.#dropped
    this.#dropped = 0
    this.#onDropped(lines)
  }

  /** Writes the last lines at exit, unless a write is pending: it may hang, and these would wait behind it. */
  #writeLast(): void {
    if (this.#waiting.length > 0 || this.#filled === 0) return
    try {
      writeSync(this.#fd, this.#filling, 0, this.#filled)
    } catch {
      // The log itself has failed, so there is nowhere to report it.
    }
  }
}

function linesOf(chunk: Buffer): number {
  return chunk.toString('latin1').split('\n').length - 1
}

/** Allocates outside of Node's pool, since `buffer.byteLength` would otherwise be the size of the pool. */
function chunkOf(line: string): Buffer {
  const chunk = Buffer.allocUnsafeSlow(Buffer.byteLength(line))
  chunk.write(line)
  return chunk
}
