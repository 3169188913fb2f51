import { WebSocket } from 'ws'
import { nextEvent, within } from '../time/until.ts'
import { type Asked, echoOf, FORGETS, type Transcript } from './received-messages.ts'

/** Delivers a message to one of all members. A faulty one is a fault that must be found. */
export type Deliver = (members: readonly Member[], member: Member, text: string) => void

const BARRIER = /-777\d{9}/

/** A browser. It keeps what it asked and what it received on each of its connections. */
export class Member {
  /** Of earlier connections, up to the last time that all was quiet. */
  readonly ended: Transcript[] = []
  asked: Asked[] = []
  received: string[] = []
  readonly #url: string
  readonly #origin: string
  readonly #deliver: (member: Member, text: string) => void
  #socket: WebSocket
  #quietAt = 0
  #barriers = 0
  #wake: () => void = () => undefined

  constructor(url: string, origin: string, deliver: (member: Member, text: string) => void) {
    this.#url = url
    this.#origin = origin
    this.#deliver = deliver
    this.#socket = this.#open()
  }

  get transcripts(): readonly Transcript[] {
    return [...this.ended, { asked: this.asked, received: this.received }]
  }

  get isPaused(): boolean {
    return this.#socket.isPaused
  }

  async opened(): Promise<void> {
    if (this.#socket.readyState === WebSocket.CONNECTING) await nextEvent(this.#socket, 'open')
  }

  /** @param name names the request in both worlds, where its text contains an id */
  send(text: string, name = text): void {
    const echo = echoOf(text)
    this.asked.push({ echo, name })
    if (echo.includes('"forget')) this.received.push(FORGETS)
    this.#socket.send(text)
  }

  take(text: string): void {
    if (!BARRIER.test(text)) this.received.push(text)
    else this.#barriers++
    this.#wake()
  }

  /** Stops reading, so that messages wait on the way, or reads on. */
  pause(isPaused: boolean): void {
    if (isPaused) this.#socket.pause()
    else this.#socket.resume()
  }

  /** Leaves and comes back as somebody new. What was still under way is not compared. */
  async reconnect(): Promise<void> {
    this.ended.push({ asked: this.asked, received: this.received.slice(0, this.#quietAt) })
    this.close()
    this.asked = []
    this.received = []
    this.#quietAt = 0
    this.#socket = this.#open()
    await this.opened()
  }

  /** Resolves once whatever upstream has sent on a connection of this member's own is here. */
  async flushed(): Promise<void> {
    const before = this.#barriers
    this.#socket.send(`{"ping":1,"req_id":-777${String(before).padStart(9, '0')}}`)
    await this.#until(() => this.#barriers > before)
    this.#quietAt = this.received.length
  }

  /** Waits until so many messages are here. @returns false if some do not come */
  async reached(count: number, patienceMs: number): Promise<boolean> {
    const isThere = (): boolean => this.received.length >= count
    const isComplete = await this.#until(isThere, patienceMs).then(
      () => true,
      () => false,
    )
    this.#quietAt = this.received.length
    return isComplete
  }

  close(): void {
    this.#socket.removeAllListeners().on('error', () => undefined)
    this.#socket.terminate()
  }

  async #until(isThere: () => boolean, patienceMs?: number): Promise<void> {
    while (!isThere()) {
      const woken = new Promise<void>((resolve) => (this.#wake = resolve))
      await within(woken, 'a member receives a message', patienceMs)
    }
  }

  #open(): WebSocket {
    const socket = new WebSocket(this.#url, { origin: this.#origin, perMessageDeflate: false })
    socket.on('error', () => undefined)
    socket.on('message', (data: Buffer) => this.#deliver(this, data.toString()))
    socket.on('close', (code) => this.#deliver(this, `closed with ${code}`))
    return socket
  }
}
