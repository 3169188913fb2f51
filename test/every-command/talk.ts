import { randomUUID } from 'node:crypto'
import type { Socket } from 'node:net'
import type { WebSocket } from 'ws'
import type { BrowserSocket } from '../support/browser/browser-socket.ts'
import { until } from '../support/time/until.ts'
import { CODES, HARMLESS } from './frame-faults.ts'
import type { FrameProxy } from './frame-proxy.ts'
import type { Actor, Scene } from './scene.ts'

/** One user at a time with a trading socket, and a proxy on each side of the server. */
export interface Seat {
  readonly scene: Scene
  readonly account: string
  readonly wires: { readonly browser: FrameProxy; readonly upstream: FrameProxy }
  actor: Actor
  /** Takes the socket at upstream. */
  meet: (socket: WebSocket) => void
}

/** A conversation, one piece of which suffers. */
export interface Run {
  /** Who closes it in the end. */
  readonly closer: 'browser' | 'upstream'
  readonly wire: 'browser' | 'upstream'
  readonly fault: string
  readonly deed: string
  readonly at: number
}

/** A conversation, and what is known of it. */
export class Talk {
  readonly wrong: string[] = []
  /** How many messages of the browser had passed when no more was to reach upstream. */
  stoppedAt: number | undefined
  readonly #seat: Seat
  readonly #run: Run
  readonly #name = randomUUID().slice(0, 6)
  readonly #got: string[] = []
  #browser: BrowserSocket | undefined
  #saw = ''
  /** Undefined until upstream has a socket. */
  #upstreamSaw: string | undefined

  constructor(seat: Seat, run: Run) {
    this.#seat = seat
    this.#run = run
    seat.meet = (socket) => this.#meet(socket)
  }

  async play(): Promise<void> {
    const { actor, account, wires } = this.#seat
    const { fault, closer, wire } = this.#run
    const browser = actor.socket(`/ws/trading/${account}`, { at: wires.browser })
    this.#browser = browser
    const { socket } = browser
    socket.once('close', (code, reason: Buffer) => (this.#saw = `${code} ${reason.toString()}`))
    const isStuck = (): boolean => fault === 'is never sent on' && wires[wire].hit !== undefined
    const comes = async (what: () => boolean): Promise<boolean> => {
      const isOver = (): boolean => this.#saw !== '' || what()
      await until(() => isOver() || isStuck()).catch((error: unknown) => this.wrong.push(String(error)))
      if (!isOver()) await until(isOver, 'a pause notices', 1500).catch(() => undefined)
      return this.#saw === '' && what()
    }
    const isEnd =
      (await comes(() => socket.readyState === socket.OPEN)) &&
      (await comes(() => browser.received.length > 0)) &&
      (await comes(this.#order(1))) &&
      (await comes(this.#order(2, 3, 4))) &&
      (await comes(this.#order(5)))
    const answered = isEnd && this.#order(closer === 'browser' ? 6 : 7)
    if (answered && closer === 'browser') socket.close(4001, 'bye')
    else if (answered) await comes(() => this.#isRefused(7))
    if (this.#isRefused(7)) socket.close(4001, 'bye')
    await comes(() => false)
    if (this.#saw === '') socket.terminate()
    await until(() => this.#saw !== '')
    if (fault === 'is never sent on') wires[wire].cut()
    await until(() => this.#upstreamSaw !== '').catch(() => this.wrong.push('upstream is not told'))
  }

  /** @param ends how the deed may have ended it */
  judge(ends: RegExp | undefined): void {
    const { fault, deed, wire, closer } = this.#run
    const { browser, upstream } = this.#seat.wires
    const hit = this.#seat.wires[wire].hit ?? ''
    const isPaused = deed.startsWith('pause')
    const told = `browser saw ${this.#saw}, upstream ${this.#upstreamSaw}`
    const expect = (holds: boolean, what: string): void => void (holds || this.wrong.push(`${what}; ${told}`))
    const heard = this.#heard
    const owed = browser.passed.client.filter((text) => !this.#isRefused(numberOf(text)))
    expect(isFirst(this.#got, owed), `upstream got ${shown(this.#got)} instead of ${shown(owed)}`)
    expect(
      isFirst(heard, upstream.passed.server),
      `browser heard ${shown(heard)} instead of ${shown(upstream.passed.server)}`,
    )
    // Who has closed is told no more. What was sent just before a reset may be lost with it.
    const isWhole = (each: 'browser' | 'upstream'): boolean =>
      ends === undefined && fault !== 'meets a reset' && (wire !== each || Object.hasOwn(HARMLESS, fault))
    const isKnown = !isPaused || (isWhole('browser') && closer === 'upstream')
    if (isWhole('upstream') && isKnown)
      expect(this.#got.length === owed.length, `upstream got only ${shown(this.#got)}`)
    if (isWhole('browser') && !this.#saw.startsWith('4001'))
      expect(heard.length === upstream.passed.server.length, `browser heard only ${shown(heard)}`)
    const late = browser.passed.client.slice(this.stoppedAt ?? Infinity)
    expect(!late.some((text) => this.#got.includes(text)), `upstream got ${shown(late)} afterwards`)
    const [sees, upstreamSees] = closesOf(`${wire}: ${hit} ${fault}`)
    const may = [ends, /^(4001 bye|3001 done)$/, isPaused && wire === 'upstream' && /^1013 upstream_lost$/, sees]
    expect(
      may.some((each) => each && each.test(this.#saw)),
      'the close',
    )
    const upstreamMay = [(ends ?? isPaused) && /^100[16] $/, /^(4001 bye|3001 done)$/, upstreamSees]
    if (this.#upstreamSaw !== undefined)
      expect(
        upstreamMay.some((each) => each && each.test(this.#upstreamSaw ?? '')),
        'the close at upstream',
      )
    if (this.#browser !== undefined) this.#browser.received.length = 0
  }

  /** What came from upstream. */
  get #heard(): string[] {
    return this.#browser?.texts.filter((text) => !text.includes('OrdersPaused')) ?? []
  }

  /** Whether an order was refused. A long one is not repeated in that. */
  #isRefused(number: number): boolean {
    const refusals = this.#browser?.texts.filter((text) => text.includes('OrdersPaused')) ?? []
    return refusals.some((text) =>
      number === 5 ? !text.includes('echo_req') : text.includes(`${this.#name}-${number}"`),
    )
  }

  /** Sends orders in one segment. The fifth one is long. @returns whether they are answered */
  #order(...numbers: number[]): () => boolean {
    const socket = this.#browser?.socket
    if (socket === undefined) return () => false
    const wire = wireOf(socket)
    wire.cork()
    for (const number of numbers)
      socket.send(
        JSON.stringify({ buy: `${this.#name}-${number}`, price: 1, x: 'x'.repeat(number === 5 ? 60_000 : 0) }),
      )
    process.nextTick(() => wire.uncork())
    const isAnswered = (number: number): boolean =>
      this.#isRefused(number) || this.#heard.some((text) => text.includes(`${this.#name}-${number}"`))
    return () => numbers.every(isAnswered)
  }

  /** Upstream answers each order, and says something more. */
  #meet(socket: WebSocket): void {
    this.#upstreamSaw = ''
    socket.send('{"tick":0}')
    socket.on('close', (code, reason) => (this.#upstreamSaw = `${code} ${reason.toString()}`))
    socket.on('message', (data: Buffer) => {
      const text = data.toString()
      this.#got.push(text)
      const wire = wireOf(socket)
      wire.cork()
      socket.send(`{"tick":${this.#got.length}}`)
      socket.send(`{"bought":"${this.#name}-${numberOf(text)}","y":"${'y'.repeat(numberOf(text) === 5 ? 70_000 : 0)}"}`)
      if (numberOf(text) === 7) socket.close(3001, 'done')
      wire.uncork()
    })
  }
}

/** How a browser's socket, and that of upstream, may be closed after this. */
function closesOf(when: string): [RegExp | undefined, RegExp | undefined] {
  const [, fault = ''] = /(?:comes with) (.+)/.exec(when) ?? []
  const code = Number(/\d+/.exec(fault)?.[0])
  const isCode = CODES.includes(code)
  const sent = code === 1005 ? /^1005 $/ : new RegExp(`^${code} why$`)
  const isOfBrowser = when.startsWith('browser')
  if (Object.keys(HARMLESS).some((each) => when.endsWith(each))) return [undefined, undefined]
  if (isOfBrowser && isCode) return [new RegExp(`^${code} `), sent]
  if (isOfBrowser) {
    const violation = fault.includes('UTF') ? 1007 : fault.includes('much') ? 1009 : 1002
    return [fault === '' ? /^1006 $/ : new RegExp(`^${violation} `), /^1001 $/]
  }
  if (isCode) return [code >= 4400 && code < 4500 ? new RegExp(`^4000 ${code} why$`) : sent, new RegExp(`^${code} `)]
  if (fault.includes('much')) return [/^1009 message_too_big$/, /^1009 $/]
  const isEarly = /handshake|reset/.test(when)
  const sees = when.includes('never')
    ? /^1006 $/
    : isEarly
      ? /^1013 upstream_(lost|unreachable)$/
      : /^1013 upstream_lost$/
  return [sees, /^10(01|02|06|07) $/]
}

const isFirst = (part: readonly string[], of: readonly string[]): boolean => part.every((each, at) => each === of[at])
const shown = (texts: readonly string[]): string => texts.map((text) => text.slice(0, 22)).join(' ')
const numberOf = (text: string): number => Number(/"\w{6}-(\d)"/.exec(text)?.[1])

/** The connection of a WebSocket. */
function wireOf(socket: WebSocket): Socket {
  // oxlint-disable-next-line no-underscore-dangle -- ws has no other name for it
  return (socket as unknown as { readonly _socket: Socket })._socket
}
