import { subscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import { Agent, type buildConnector, type Dispatcher } from 'undici'

/** What RFC 9112 §4 puts before the status: `HTTP/1.1 `. */
const STATUS_AT = 9
const STATUS_END = STATUS_AT + 3
/** In bytes: “0”, “1”, “2”, CR, and the end of a head. */
const [ZERO, ONE, TWO, CR, LF] = [0x30, 0x31, 0x32, 0x0d, 0x0a]
const HEAD_END = [CR, LF, CR, LF]

/** The readers of connections, each of which begins with every request. */
const readers = new WeakMap<object, InterimReader>()
subscribe('undici:client:sendHeaders', (message) => readers.get((message as { socket: Socket }).socket)?.begin())

/**
 * Makes a connector whose connections take a `100 Continue` that nobody asked for (RFC 9110 §15.2). undici takes every
 * other interim response, but closes the connection on this one, although the request may have been executed. Before it
 * reads one, it therefore becomes a 102, which says as little.
 */
export function takingContinue(connect: buildConnector.connector): buildConnector.connector {
  return (options, callback) =>
    connect(options, (...result) => {
      const [, socket] = result
      // undici listens later, and so reads what is put back here.
      if (socket !== null) readFirst(socket, new InterimReader())
      callback(...result)
    })
}

/**
 * An agent that opens a connection for each request and closes it after the response, TLS or not: never HTTP/2, whose
 * one connection would serve all of them, and fail all of them once it is dead. It reads responses as they are meant.
 */
export function oneUseAgent(connect: buildConnector.connector): Dispatcher {
  const agent = new Agent({ allowH2: false, pipelining: 0, connect: takingContinue(connect) })
  return agent.compose((dispatch) => (options, handler) => dispatch(options, new WholeResponse(handler)))
}

/**
 * Whether a response has failed only because its length is not that which undici counts. It takes white space after the
 * value of Content-Length (RFC 9110 §5.5) for digits, but ends the body where the length is meant to end.
 */
export function isMisreadLength(error: Error & { code?: string }): boolean {
  return error.code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH'
}

function readFirst(socket: Socket, reader: InterimReader): void {
  readers.set(socket, reader)
  socket.on('readable', () => {
    if (!reader.isReading) return
    const chunk = socket.read() as Buffer | null
    if (chunk === null) return
    reader.read(chunk)
    socket.unshift(chunk)
  })
}

/** Reads the heads of the responses to one request, up to the status of the final one. */
class InterimReader {
  isReading = false
  /** Position in the current head, up to the end of its status. */
  #position = 0
  #mayBeContinue = false
  /** How much of the end of an interim head has been read. */
  #ended = 0

  begin(): void {
    this.isReading = true
    this.#position = 0
    this.#ended = 0
  }

  /** Replaces the status of each `100 Continue`, however the connection has cut it into chunks. */
  read(chunk: Buffer): void {
    for (let index = 0; index < chunk.length && this.isReading; index++) {
      const byte = chunk[index] as number
      if (this.#position >= STATUS_END) this.#skip(byte)
      else if (this.#isContinue(byte)) chunk[index] = TWO
    }
  }

  /** Whether this is the last digit of the status 100. */
  #isContinue(byte: number): boolean {
    // Empty lines before a status are ignored (RFC 9112 §2.2).
    if (this.#position === 0 && (byte === CR || byte === LF)) return false
    const digit = this.#position++ - STATUS_AT
    if (digit === 0) this.isReading = byte === ONE
    if (digit === 1) this.#mayBeContinue = byte === ZERO
    return digit === 2 && this.#mayBeContinue && byte === ZERO
  }

  #skip(byte: number): void {
    if (byte === HEAD_END[this.#ended]) this.#ended++
    else this.#ended = byte === CR ? 1 : 0
    if (this.#ended === HEAD_END.length) this.begin()
  }
}

/** Ends a response whose length undici has misread. */
class WholeResponse implements Dispatcher.DispatchHandler {
  readonly #handler: Dispatcher.DispatchHandler
  #length: number | undefined
  #received = 0

  constructor(handler: Dispatcher.DispatchHandler) {
    this.#handler = handler
  }

  onRequestStart(...start: Parameters<Required<Dispatcher.DispatchHandler>['onRequestStart']>): void {
    this.#handler.onRequestStart?.(...start)
  }

  onResponseStart(...start: Parameters<Required<Dispatcher.DispatchHandler>['onResponseStart']>): void {
    const [, , headers] = start
    this.#length = Number(headers['content-length'])
    this.#handler.onResponseStart?.(...start)
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#received += chunk.length
    this.#handler.onResponseData?.(controller, chunk)
  }

  onResponseEnd(controller: Dispatcher.DispatchController, trailers: Record<string, string>): void {
    this.#handler.onResponseEnd?.(controller, trailers)
  }

  onResponseError(controller: Dispatcher.DispatchController, error: Error): void {
    if (isMisreadLength(error) && this.#received === this.#length) this.onResponseEnd(controller, {})
    else this.#handler.onResponseError?.(controller, error)
  }
}
