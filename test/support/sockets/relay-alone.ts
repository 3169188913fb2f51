import { EventEmitter } from 'node:events'
import type { Test } from 'tap'
import type { CloseStatus } from '../../../src/sockets/close-codes.ts'
import type { OrderGate } from '../../../src/sockets/relay/order-gate.ts'
import { Relay } from '../../../src/sockets/relay/relay.ts'
import type { OpenSocket } from '../../../src/sockets/socket-end.ts'
import { ManualTimers } from '../time/manual-timers.ts'

/** MAX_BUFFERED_BYTES of the relay. */
export const MOST = 10_000
export const SLOW_MS = 7000

type Options = ConstructorParameters<typeof Relay>[2]

/** A message that was read alone, without a header before it. */
export function readAlone(text: string, bytes = text.length): Buffer {
  const message = Buffer.from(new ArrayBuffer(bytes))
  message.write(text)
  return message
}

/** The socket of a peer without a connection. While it is slow, what is sent to it waits until a test has it read. */
export class Peer extends EventEmitter {
  readonly OPEN = 1
  readyState = 1
  isSlow = false
  isRead = true
  /** What it was sent, closes included. */
  readonly got: unknown[] = []
  readonly wire = Object.assign(new EventEmitter(), {
    writableLength: 0,
    readableLength: 0,
    destroyed: false,
    bytesRead: 0,
    resetAndDestroy: () => {
      this.got.push('reset')
      Object.assign(this.wire, { destroyed: true, writableLength: 0 })
    },
  })
  readonly _receiver = Object.assign(new EventEmitter(), {
    _fragments: [],
    _messageLength: 0,
    _bufferedBytes: 0,
    _maxPayload: 0,
    dataMessage: () => undefined,
  })
  readonly #queue: (readonly [number, (() => void) | undefined])[] = []

  get open(): OpenSocket {
    return { socket: this, wire: this.wire } as unknown as OpenSocket
  }

  /** It sends a message, of this many bytes if need be. */
  says(text: string, bytes = text.length, isBinary = false): void {
    this.emit('message', readAlone(text, bytes), isBinary)
  }

  send(message: Buffer, { binary }: { binary: boolean }, sent?: () => void): void {
    this.got.push(message.toString().replaceAll('\0', '') + (binary ? ' binary' : ''))
    if (!this.isSlow) return sent?.()
    this.wire.writableLength += message.length
    this.#queue.push([message.length, sent])
  }

  /** It reads so many of the messages that wait. */
  reads(count: number): void {
    for (const [bytes, sent] of this.#queue.splice(0, count)) {
      this.wire.writableLength -= bytes
      sent?.()
    }
  }

  pause(): void {
    this.isRead = false
  }

  resume(): void {
    this.isRead = true
  }

  ping(): void {}

  close(code?: number, reason = ''): void {
    this.got.push(`close ${code} ${reason}`.trimEnd())
  }

  terminate(): void {
    this.got.push('terminate')
  }
}

/** A relay between two such peers, what it counts and how it ends. */
export function relayAlone(t: Test, options: Partial<Options> = {}) {
  const timers = new ManualTimers(t)
  const browser = new Peer()
  const upstream = new Peer()
  upstream.pause()
  const traffic = { to_browser: { messages: 0, bytes: 0 }, to_upstream: { messages: 0, bytes: 0 } }
  const operations: string[] = []
  const ends: (readonly [CloseStatus, string | undefined])[] = []
  const relay = new Relay(browser.open, upstream.open, {
    limits: { maxBufferedBytes: MOST, slowConsumerMs: SLOW_MS },
    metrics: { relayTraffic: traffic, countRelayOperation: (name: string) => void operations.push(name) } as never,
    onEnd: (close, fault) => void ends.push([close, fault]),
    ...options,
  })
  t.teardown(() => relay.end({ code: 1000, reason: '' }))
  return { timers, browser, upstream, relay, traffic, operations, ends }
}

/** A gate that does what a test says. */
export function gateAlone(judge: OrderGate['judge'] = () => 'passes') {
  const gate = {
    isClosed: true,
    isLeft: false,
    judge,
    close: (): void => undefined,
    onClosed: (listener: () => void) => {
      gate.close = listener
      return () => void (gate.isLeft = true)
    },
  }
  return gate
}
