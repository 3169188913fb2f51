import type { FastifyBaseLogger } from 'fastify'
import { logFailure } from '../../../telemetry/failure-log.ts'
import type { Metrics } from '../../../telemetry/metrics.ts'
import { UPSTREAM, type CloseStatus } from '../../close-codes.ts'
import { SocketEnd, type OpenSocket } from '../../socket-end.ts'
import { openUpstreamSocket } from '../../upstream-socket.ts'
import type { WaitingBytes } from '../../waiting-bytes.ts'
import { type UpstreamMessage, dissect } from '../wire/index.ts'

/** What the upstream sockets of single browsers work with. */
interface OwnSocketDependencies {
  readonly url: string
  readonly maxMessageBytes: number
  readonly maxBufferedBytes: number
  /** Absent where nothing bounds the waiting bytes of the process. */
  readonly waiting?: WaitingBytes | undefined
  readonly log: FastifyBaseLogger
  readonly traffic: Metrics['relayTraffic']['to_upstream']
  /** Called once. */
  readonly onEnd: () => void
}

/** The browser that an own socket belongs to. */
interface OwnSocketOwner {
  /** Sends a message to the browser as it is. */
  pass(message: Buffer, isBinary: boolean): void
  /** More may wait now. */
  press(): void
  /** Less may wait now. */
  relieve(): void
  end(close: CloseStatus): void
}

/** The first `req_id` of this server's own requests on such a socket. Pages count from 1 upwards. */
const FIRST_REQ_ID = -9_007_199_254_000_000

/**
 * An upstream socket of one browser, for what cannot be shared. Messages pass both ways byte for byte, as in a relay, and when
 * upstream ends it the browser's socket ends in the same way.
 */
export class OwnSocket {
  readonly #member: OwnSocketOwner
  readonly #deps: OwnSocketDependencies
  readonly #opening = new AbortController()
  readonly #asked = new Map<number, (message: UpstreamMessage) => void>()
  /** What the browser sent before the socket was open. */
  #early: (readonly [Buffer, boolean])[] = []
  #earlyBytes = 0
  #nextReqId = FIRST_REQ_ID
  #end: SocketEnd | undefined
  #isOver = false

  constructor(member: OwnSocketOwner, deps: OwnSocketDependencies) {
    this.#member = member
    this.#deps = deps
    void this.#open()
  }

  /** Bytes that wait in this process for upstream. */
  get waitingBytes(): number {
    return this.#earlyBytes + (this.#end?.heldBytes ?? 0)
  }

  /** Whether the browser must wait before it sends more. */
  get isFull(): boolean {
    const { maxBufferedBytes } = this.#deps
    if (this.#end === undefined) return this.#earlyBytes > maxBufferedBytes
    return this.#end.waitingBytes > maxBufferedBytes / 2
  }

  send(message: Buffer, isBinary: boolean): void {
    const { traffic, maxBufferedBytes } = this.#deps
    traffic.messages++
    traffic.bytes += message.length
    if (this.#end !== undefined) this.#end.send(message, isBinary, maxBufferedBytes / 2)
    else {
      this.#early.push([message, isBinary])
      this.#earlyBytes += message.length
      this.#deps.waiting?.add(message.length)
    }
    this.#member.press()
  }

  /** Sends a request of this server's, whose answer the browser does not get. */
  ask(write: (reqId: number) => Buffer, onAnswer: (message: UpstreamMessage) => void): void {
    const reqId = this.#nextReqId++
    this.#asked.set(reqId, onAnswer)
    this.send(write(reqId), false)
  }

  /** Reads nothing from upstream while the browser is slow. */
  pause(): void {
    this.#end?.pause()
  }

  resume(): void {
    this.#end?.resume()
  }

  /** Ends this socket, but not the browser's. */
  end(close?: CloseStatus): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#opening.abort()
    this.#end?.close(close)
    this.#deps.onEnd()
  }

  async #open(): Promise<void> {
    const { url, maxMessageBytes, log } = this.#deps
    const outcome = await openUpstreamSocket(url, maxMessageBytes, this.#opening.signal)
    if (outcome.is === 'open') {
      if (this.#isOver) outcome.connection.socket.terminate()
      else this.#opened(outcome.connection)
      return
    }
    if (this.#isOver) return
    const { why, cause, close } = outcome
    logFailure(log, 'upstream refused a socket', { why, kind: 'public' }, cause)
    this.#member.end(close)
  }

  #opened(connection: OpenSocket): void {
    const { maxBufferedBytes, log, waiting } = this.#deps
    const end = new SocketEnd(connection, UPSTREAM, {
      message: (message, isBinary) => {
        if (!this.#tookAnswer(message, isBinary)) this.#member.pass(message, isBinary)
      },
      ended: ({ own, other, why, isFault }) => {
        if (isFault) logFailure(log, 'upstream broke the WebSocket protocol', { kind: 'public', why })
        this.end(own)
        this.#member.end(other)
      },
      waiting,
    })
    this.#end = end
    end.onSent = () => this.#member.relieve()
    end.begin()
    if (this.#isOver) return
    for (const [message, isBinary] of this.#early) end.send(message, isBinary, maxBufferedBytes / 2)
    this.#early = []
    this.#earlyBytes = 0
    // The socket is read as soon as the browser is not slow.
    end.pause()
    this.#member.relieve()
  }

  /** Hands over the answer to a request of this server's. @returns false for any other message */
  #tookAnswer(message: Buffer, isBinary: boolean): boolean {
    if (this.#asked.size === 0 || isBinary) return false
    const answer = dissect(message)
    const onAnswer = answer?.reqId === undefined ? undefined : this.#asked.get(answer.reqId)
    if (answer?.reqId === undefined || onAnswer === undefined) return false
    this.#asked.delete(answer.reqId)
    onAnswer(answer)
    return true
  }
}
