import { once } from 'node:events'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import type { Test } from 'tap'
import { nextEvent, within } from '../time/until.ts'

/** One request as its bytes arrived. */
export interface RawRequest {
  readonly method: string
  readonly target: string
  /** Names in lower case, in the order they came. */
  readonly headers: readonly (readonly [name: string, value: string])[]
  readonly body: string
  /** 1 for the first connection. */
  readonly connection: number
}

/** An upstream that is reduced to TCP: it records every byte, and a test scripts its responses, valid or not. */
export interface RawUpstream {
  readonly url: string
  /** Whole requests, in the order in which they were complete. */
  readonly requests: RawRequest[]
  /** Every byte of each connection, as latin1. */
  readonly received: string[]
  readonly open: ReadonlySet<Socket>
  /** Called with every whole request. */
  answer: (request: RawRequest, socket: Socket) => void
  /** Called as soon as the headers of a request have arrived. */
  onHead: (head: string, socket: Socket) => void
  /** The value of a header of the latest request. */
  readonly header: (name: string) => string | undefined
  /** Resolves with the next whole request. */
  readonly next: () => Promise<RawRequest>
  /** Forgets the requests, and restores the default response. */
  readonly reset: () => void
}

/** A response with status 200. */
export function ok(body = '{}', headers = ''): string {
  return `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n${headers}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
}

/** Resolves once a connection is closed. */
export async function gone(socket: Socket | undefined): Promise<void> {
  if (socket === undefined || socket.destroyed) return
  // An error on the way is no failure, so this is not `nextEvent`.
  const closed = new Promise<void>((resolve) => void socket.once('close', () => resolve()))
  await within(closed, 'a connection is closed')
}

const answerOk = (_request: RawRequest, socket: Socket): void => void socket.write(ok())

/** Starts one that ends with the test. */
export async function rawUpstream(t: Test): Promise<RawUpstream> {
  const open = new Set<Socket>()
  const waiting: ((request: RawRequest) => void)[] = []
  const server = createServer((socket) => {
    open.add(socket)
    socket.on('error', () => undefined).on('close', () => open.delete(socket))
    read(socket, upstream, waiting)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const upstream: RawUpstream = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests: [],
    received: [],
    open,
    answer: answerOk,
    onHead: () => undefined,
    header: (name) => upstream.requests.at(-1)?.headers.find(([each]) => each === name)?.[1],
    next: () => {
      const request = new Promise<RawRequest>((resolve) => void waiting.push(resolve))
      return within(request, 'upstream receives a request')
    },
    reset() {
      upstream.requests.length = 0
      upstream.answer = answerOk
      upstream.onHead = () => undefined
    },
  }
  t.teardown(async () => {
    const closed = nextEvent(server, 'close')
    server.close()
    for (const socket of open) socket.destroy()
    await closed
  })
  return upstream
}

function read(socket: Socket, upstream: RawUpstream, waiting: ((request: RawRequest) => void)[]): void {
  const connection = upstream.received.push('')
  let unread = ''
  // The headers of the request whose body is still on its way. Searching for them again with every chunk of a large
  // body would copy all of it each time.
  let head: string | undefined
  socket.on('data', (chunk: Buffer) => {
    const text = chunk.toString('latin1')
    upstream.received[connection - 1] += text
    unread += text
    for (;;) {
      if (head === undefined) {
        const end = unread.indexOf('\r\n\r\n')
        if (end === -1) return
        head = unread.slice(0, end)
        unread = unread.slice(end + 4)
        upstream.onHead(head, socket)
      }
      const body = wholeBody(head, unread)
      if (body === undefined) return
      const request = { ...parseHead(head), body: body.text, connection }
      head = undefined
      unread = body.rest
      upstream.requests.push(request)
      waiting.shift()?.(request)
      upstream.answer(request, socket)
    }
  })
}

function parseHead(head: string): Pick<RawRequest, 'method' | 'target' | 'headers'> {
  const [line = '', ...lines] = head.split('\r\n')
  const [method = '', target = ''] = line.split(' ')
  const headers = lines.map((each) => {
    const colon = each.indexOf(':')
    return [each.slice(0, colon).toLowerCase(), each.slice(colon + 1).trim()] as const
  })
  return { method, target, headers }
}

/** The body after the headers, once it is complete. */
function wholeBody(head: string, after: string): { text: string; rest: string } | undefined {
  const length = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0)
  if (!/^transfer-encoding: *chunked/im.test(head)) {
    return after.length < length ? undefined : { text: after.slice(0, length), rest: after.slice(length) }
  }
  let text = ''
  let at = 0
  for (;;) {
    const lineEnd = after.indexOf('\r\n', at)
    if (lineEnd === -1) return undefined
    const size = Number.parseInt(after.slice(at, lineEnd), 16)
    const next = lineEnd + 2 + size + 2
    if (after.length < next) return undefined
    if (size === 0) return { text, rest: after.slice(next) }
    text += after.slice(lineEnd + 2, lineEnd + 2 + size)
    at = next
  }
}
