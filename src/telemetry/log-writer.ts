import { write, writeSync } from 'node:fs'

/** No line waits longer than this for others, to be written together with them. */
const FLUSH_MS = 250
/** When nobody reads, lines are dropped rather than the memory filled. */
const MAX_WAITING_BYTES = 16 * 1_048_576
/** How long to wait for a full pipe that does not block. */
const RETRY_MS = 100
/** UTF-8 needs no more for a UTF-16 code unit. */
const MAX_BYTES_PER_UNIT = 3

/**
 * Writes lines to a file descriptor, many in a write, which a thread of its own waits for: a reader that is slow, or
 * hangs, holds up nobody. Lines are put into one buffer as they come, since anything that keeps them as strings costs
 * several times as much.
 */
export class LogWriter {
  readonly #fd: number
  readonly #chunkBytes: number
  readonly #onDropped: (lines: number) => void
  /** Whole lines, not yet on their way. */
  #filling: Buffer
  #filled = 0
  /** Chunks on their way, the first of which is being written. */
  readonly #waiting: Buffer[] = []
  #waitingBytes = 0
  #dropped = 0
  #droppedInAll = 0
  /** Set while the oldest line of the filling chunk may still wait. */
  #timer: NodeJS.Timeout | undefined
  readonly #flushes: { readonly last: Buffer; readonly done: () => void }[] = []

  /**
   * @param chunkBytes of a write, unless a single line is longer; only a full disk cuts lines in two
   * @param onDropped told how many lines were dropped, with the first one that is not
   */
  constructor(fd: number, chunkBytes: number, onDropped: (lines: number) => void) {
    this.#fd = fd
    this.#chunkBytes = chunkBytes
    this.#onDropped = onDropped
    this.#filling = Buffer.allocUnsafeSlow(chunkBytes)
    process.once('exit', () => this.#writeLast())
  }

  /** Lines that nobody will read: there was no room for them, or they could not be written. */
  get droppedLines(): number {
    return this.#droppedInAll
  }

  /** Adds a line, `\n` included. Returns at once, whatever becomes of it. */
  write(line: string): void {
    if (this.#waitingBytes > MAX_WAITING_BYTES) {
      this.#droppedInAll++
      return void this.#dropped++
    }
    if (this.#dropped > 0) this.#reportDropped()
    const mostBytes = line.length * MAX_BYTES_PER_UNIT
    if (this.#filled + mostBytes > this.#chunkBytes) {
      this.#send()
      if (mostBytes > this.#chunkBytes) return this.#enqueue(chunkOf(line))
    }
    if (this.#filled === 0) this.#timer = setTimeout(() => this.#due(), FLUSH_MS).unref()
    this.#filled += this.#filling.write(line, this.#filled)
  }

  /** Calls back when all lines so far are written, or cannot be. */
  flush(done: () => void = () => undefined): void {
    this.#send()
    const last = this.#waiting.at(-1)
    if (last === undefined) done()
    else this.#flushes.push({ last, done })
  }

  #due(): void {
    this.#timer = undefined
    // Else when that write is done: chunks are better full.
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
    if (this.#waiting.push(chunk) === 1) this.#writeOn(chunk, 0)
  }

  #writeOn(chunk: Buffer, from: number): void {
    write(this.#fd, chunk, from, chunk.length - from, null, (error, bytes) => {
      if (error?.code === 'EAGAIN') return void setTimeout(() => this.#writeOn(chunk, from), RETRY_MS)
      // What cannot be written is lost: a full disk, a reader that has gone.
      if (error === null && from + bytes < chunk.length) return this.#writeOn(chunk, from + bytes)
      if (error !== null) this.#droppedInAll += linesOf(chunk.subarray(from))
      this.#done(chunk)
    })
  }

  #done(chunk: Buffer): void {
    this.#waiting.shift()
    this.#waitingBytes -= chunk.buffer.byteLength
    const [next] = this.#waiting
    if (next !== undefined) this.#writeOn(next, 0)
    else if (this.#timer === undefined) this.#send()
    while (this.#flushes[0]?.last === chunk) this.#flushes.shift()?.done()
  }

  #reportDropped(): void {
    const lines = this.#dropped
    this.#dropped = 0
    this.#onDropped(lines)
  }

  /** At the very end; but nothing that would wait behind a write that hangs. */
  #writeLast(): void {
    if (this.#waiting.length > 0 || this.#filled === 0) return
    try {
      writeSync(this.#fd, this.#filling, 0, this.#filled)
    } catch {
      // Nobody is left to tell.
    }
  }
}

function linesOf(chunk: Buffer): number {
  let lines = 0
  for (let at = chunk.indexOf('\n'); at >= 0; at = chunk.indexOf('\n', at + 1)) lines++
  return lines
}

/** Not from Node's pool, whose size it would then seem to have. */
function chunkOf(line: string): Buffer {
  const chunk = Buffer.allocUnsafeSlow(Buffer.byteLength(line))
  chunk.write(line)
  return chunk
}
