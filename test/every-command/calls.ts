import type { ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'

/** What calls to peers are for. */
export type CallName = 'tokens' | 'revocation' | 'keys' | 'identity' | 'REST' | 'OTP' | 'socket'

/** What may happen to a call. */
export const CALL_FAULTS = [
  'is lost',
  'gets no response',
  'gets half a response',
  'gets a 500',
  'gets a 429',
  'gets a 429 with Retry-After',
  'gets a 401',
  'gets a 401 twice',
  'gets an invalid_grant',
  'gets a page',
  'gets a text',
  'gets too much',
  'gets a late response',
] as const
export type CallFault = (typeof CALL_FAULTS)[number]

/** What a peer says. */
interface Response {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** Longer than a server waits for any peer: 10 s for the handshake of a socket. */
const LATE_MS = 10_500
/** More than a server reads of any response that it has to understand. */
const MUCH = ' '.repeat(2 * 1024 * 1024)
const JSON_TYPE = { 'content-type': 'application/json' }

/** What is said instead of executing a call. */
const REFUSALS: Partial<Record<CallFault, Response>> = {
  'gets a 500': { status: 500, headers: JSON_TYPE, body: '{"error":"unlucky"}' },
  'gets a 429': { status: 429, headers: JSON_TYPE, body: '{"error":"slow_down"}' },
  'gets a 429 with Retry-After': {
    status: 429,
    headers: { ...JSON_TYPE, 'retry-after': '1' },
    body: '{"error":"slow_down"}',
  },
  'gets a 401': { status: 401, headers: JSON_TYPE, body: '{}' },
  'gets a 401 twice': { status: 401, headers: JSON_TYPE, body: '{}' },
  'gets an invalid_grant': { status: 400, headers: JSON_TYPE, body: '{"error":"invalid_grant"}' },
}

/** Which calls may suffer what. */
function mayBe(fault: CallFault, call: CallName): boolean {
  if (fault === 'gets an invalid_grant') return call === 'tokens'
  if (fault === 'gets a 401') return ['REST', 'OTP', 'socket'].includes(call)
  if (fault === 'gets a 401 twice') return ['REST', 'OTP'].includes(call)
  return call !== 'socket' || !['gets a text', 'gets too much'].includes(fault)
}

/** The calls to provider and upstream. One of those that count suffers a fault. */
export class Calls {
  #at = 0
  #seen = 0
  #fault: CallFault | undefined
  /** What has suffered. */
  hit: CallName | undefined
  /** Whose calls never suffer. */
  bystander: string | undefined

  /** Has a call suffer a fault that it may suffer. @param at how many such calls pass before it */
  arm(at: number, fault: CallFault): void {
    this.hit = undefined
    this.#at = at
    this.#seen = 0
    this.#fault = fault
  }

  /** Nothing suffers any more. */
  heal(): void {
    this.#fault = undefined
  }

  /** A call with a response. @param sub of whom it is */
  serve(call: CallName, sub: string | undefined, response: ServerResponse, execute: () => unknown): unknown {
    const fault = this.#turn(call, sub)
    if (fault === undefined) return execute()
    if (fault === 'is lost') return response.socket?.destroy()
    const [writeHead, end] = [response.writeHead.bind(response), response.end.bind(response)]
    const say = ({ status, headers, body }: Response): unknown => writeHead(status, headers) && end(body)
    const refusal = REFUSALS[fault]
    if (refusal !== undefined) return say(refusal)
    let [status, headers]: [number, Response['headers']] = [200, {}]
    Object.assign(response, {
      writeHead(...head: [number, Response['headers']]) {
        ;[status, headers] = head
        return response
      },
      end(body = '') {
        if (fault === 'gets no response') response.socket?.destroy()
        else if (fault === 'gets half a response') {
          writeHead(status, { ...headers, 'content-length': String(body.length + 1) })
          response.write(`${body.slice(0, body.length / 2)} `, () => response.socket?.destroy())
        } else if (fault === 'gets a late response') setTimeout(say, LATE_MS, { status, headers, body })
        else if (fault === 'gets a page')
          say({ status, headers: { 'content-type': 'text/html' }, body: '<h1>Hello</h1>' })
        else if (fault === 'gets a text') say({ status, headers: { 'content-type': 'text/plain' }, body })
        else say({ status, headers, body: body + MUCH })
      },
    })
    return execute()
  }

  /** The handshake of a WebSocket. @param sub of whom it is */
  open(sub: string | undefined, socket: Duplex, accept: () => void): void {
    const fault = this.#turn('socket', sub)
    if (fault === undefined) return accept()
    if (fault === 'is lost' || fault === 'gets no response') return void socket.destroy()
    if (fault === 'gets half a response') return void socket.end('HTTP/1.1 101 Switching Protocols\r\nUpgrade: webs')
    if (fault === 'gets a late response') return void setTimeout(() => socket.destroyed || accept(), LATE_MS)
    const { status, headers, body } = REFUSALS[fault] ?? { status: 200, headers: {}, body: '<h1>Hello</h1>' }
    const lines = Object.entries({ ...headers, 'content-length': body.length }).map((pair) => pair.join(': '))
    socket.end([`HTTP/1.1 ${status} Something`, ...lines, '', body].join('\r\n'))
  }

  #turn(call: CallName, sub: string | undefined): CallFault | undefined {
    const fault = this.#fault
    if (fault === undefined || !mayBe(fault, call) || (sub !== undefined && sub === this.bystander)) return undefined
    const behind = this.#seen++ - this.#at
    if (behind < 0 || behind > (fault === 'gets a 401 twice' ? 1 : 0)) return undefined
    this.hit ??= call
    return fault
  }
}
