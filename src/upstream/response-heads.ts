import { subscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import { Agent, type buildConnector } from 'undici'

/** Where the three digits of the status are in a head: after `HTTP/1.1 ` (RFC 9112 §4). */
const STATUS_AT = 9
const STATUS_END = STATUS_AT + 3
/** The headers that say where a body ends. */
const [LENGTH, CODING] = [Buffer.from('content-length:'), Buffer.from('transfer-encoding:')]
/** For {@link HeadReader}: the line has another name. */
const OTHER = -1
/** For {@link HeadReader}: the byte is left out. */
const NOTHING = -1
const [TAB, LF, CR, SPACE] = [0x09, 0x0a, 0x0d, 0x20]
const [COMMA, ZERO, ONE, TWO, BEGIN, LETTER] = [0x2c, 0x30, 0x31, 0x32, 0x48, 0x78]
/** Makes a letter small, and changes neither `-` nor `:`. */
const SMALL = 0x20

/** The readers of connections, each of which begins anew with every request. */
const readers = new WeakMap<object, HeadReader>()
subscribe('undici:client:sendHeaders', (message) => readers.get((message as { socket: Socket }).socket)?.begin())

/**
 * Makes a connector that accepts two things which undici takes for a fault, so that a request that has been executed would count as
 * lost: a `100 Continue` that nobody asked for (RFC 9110 §15.2), and white space after the header that says where a body ends (RFC 9110
 * §5.5). Before undici reads a head, the first becomes a 102, which says as little, and the second is left out.
 */
export function readingHeads(connect: buildConnector.connector): buildConnector.connector {
  return (options, callback) =>
    connect(options, (...result) => {
      const [, socket] = result
      // The types of undici say null, but without a socket there is none.
      if (socket) readFirst(socket, new HeadReader())
      callback(...result)
    })
}

/**
 * An agent that opens a connection for each request and closes it after the response, TLS or not: never HTTP/2, where one
 * connection would serve all of them, and fail all of them once it is dead.
 */
export function oneUseAgent(connect: buildConnector.connector): Agent {
  return new Agent({ allowH2: false, pipelining: 0, connect: readingHeads(connect) })
}

function readFirst(socket: Socket, reader: HeadReader): void {
  readers.set(socket, reader)
  const read = socket.read.bind(socket)
  // undici reads a connection by this alone. Putting back what was read would cost a turn of the stream for each response.
  socket.read = (size?: number): unknown => {
    for (;;) {
      const chunk = read(size) as Buffer | null
      if (chunk === null || !reader.isReading) return chunk
      const meant = reader.read(chunk)
      if (meant.length > 0) return meant
    }
  }
}

/**
 * Reads the heads of the responses to one request, to the end of the final one, however the connection has cut them. Whether
 * they are valid is left to undici.
 */
class HeadReader {
  isReading = false
  /** In the current head, up to the end of its status. */
  #position = 0
  #isInterim = false
  #isContinue = false
  #isLineEmpty = false
  /** The name that the line may begin with, and how much of it there is, or OTHER. */
  #name = LENGTH
  #named = OTHER
  /** In the value of such a header: an element has begun; white space has come after it. */
  #isInElement = false
  #isAfterElement = false

  begin(): void {
    this.isReading = true
    this.#position = 0
    this.#isLineEmpty = false
    this.#named = OTHER
  }

  /** @returns the chunk as it is meant, in its own memory */
  read(chunk: Buffer): Buffer {
    if (this.#position === 0 && isPlain(chunk)) {
      this.isReading = false
      return chunk
    }
    let read = 0
    let kept = 0
    while (this.isReading && read < chunk.length) {
      const byte = this.#meant(chunk[read++] as number)
      if (byte !== NOTHING) chunk[kept++] = byte
    }
    if (kept === read) return chunk
    chunk.copyWithin(kept, read)
    return chunk.subarray(0, chunk.length - (read - kept))
  }

  #meant(byte: number): number {
    if (this.#position < STATUS_END) return this.#status(byte)
    if (byte === LF) return this.#endLine()
    if (byte === CR) return byte
    this.#isLineEmpty = false
    if (this.#named === OTHER) return byte
    if (this.#named === this.#name.length) return this.#value(byte)
    const letter = byte | SMALL
    if (this.#named === 0) this.#name = letter === LENGTH[0] ? LENGTH : CODING
    this.#named = letter === this.#name[this.#named] ? this.#named + 1 : OTHER
    return byte
  }

  #status(byte: number): number {
    // Empty lines before a status are ignored (RFC 9112 §2.2).
    if (this.#position === 0 && (byte === CR || byte === LF)) return byte
    const digit = this.#position++ - STATUS_AT
    if (digit === 0) this.#isInterim = byte === ONE
    if (digit === 1) this.#isContinue = this.#isInterim && byte === ZERO
    return digit === 2 && this.#isContinue && byte === ZERO ? TWO : byte
  }

  #endLine(): number {
    if (this.#isLineEmpty && this.#isInterim) this.begin()
    else if (this.#isLineEmpty) this.isReading = false
    else {
      this.#isLineEmpty = true
      this.#named = 0
      this.#isInElement = this.#isAfterElement = false
    }
    return LF
  }

  #value(byte: number): number {
    if (byte === SPACE || byte === TAB) {
      if (!this.#isInElement) return byte
      this.#isAfterElement = true
      return NOTHING
    }
    // “1 2” must not become 12.
    if (this.#isAfterElement && byte !== COMMA) return LETTER
    this.#isInElement = byte !== COMMA
    this.#isAfterElement = false
    return byte
  }
}

/** Whether a chunk begins with the whole head of a final response, no line of which ends with white space: nearly always. */
function isPlain(chunk: Buffer): boolean {
  if (chunk[0] !== BEGIN || chunk[STATUS_AT] === ONE) return false
  let before = 0
  for (let index = STATUS_END; index < chunk.length; index++) {
    const byte = chunk[index] as number
    if (byte === CR) {
      if (before === SPACE || before === TAB) return false
      // The end of an empty line: that of the head.
      if (before === LF) return true
    }
    before = byte
  }
  return false
}
