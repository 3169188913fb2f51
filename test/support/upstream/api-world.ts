import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http'
import { connect, type Socket } from 'node:net'
import type { Readable } from 'node:stream'
import type { Test } from 'tap'
import { rawUpstream, type RawUpstream } from './raw-upstream.ts'
import { nextEvent } from '../time/until.ts'
import { logIn, testWorld, type World, type WorldOptions } from '../server/world.ts'

/** A response with its whole body. */
export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly bytes: Buffer
  readonly text: string
  /** The parsed body, which usually is a problem document. */
  readonly json: Record<string, unknown>
}

/** The headers and body of a call. No other headers are sent except Host and framing. */
export interface CallInit {
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer | Readable
}

/** A server whose upstream is raw TCP, and a browser that is logged in to it. */
export interface ApiWorld {
  readonly world: World
  readonly upstream: RawUpstream
  /** The Cookie header of the logged-in browser. */
  readonly cookie: string
  /** A call as a script of the frontend makes it, without a session unless a cookie is given. */
  readonly send: (method: string, path: string, init?: CallInit) => Promise<Answer>
  /** Like {@link send}, with the session and X-CSRF. */
  readonly call: (method: string, path: string, init?: CallInit) => Promise<Answer>
  /** Writes bytes on a new connection, and reads until the server closes it or has been silent for a second. */
  readonly raw: (bytes: string) => Promise<string>
  /** A new connection to the server. */
  readonly connection: () => Promise<Socket>
}

const HALF_A_SILENCE_MS = 500

/** Starts one that ends with the test. */
export async function apiWorld(t: Test, options: WorldOptions = {}): Promise<ApiWorld> {
  const upstream = await rawUpstream(t)
  const world = await testWorld(t, { ...options, settings: { API_URL: upstream.url, ...options.settings } })
  const { browser, server } = world
  await logIn(browser, server.url)
  const url = new URL(server.url)
  const cookie = browser.cookieHeader(url, url)
  const connection = async (): Promise<Socket> => {
    const socket = connect(server.port, '127.0.0.1')
    t.teardown(() => socket.destroy())
    socket.on('error', () => undefined)
    await nextEvent(socket, 'connect')
    return socket
  }
  const send: ApiWorld['send'] = (method, path, init) => sendTo(server.port, method, path, init)
  return {
    world,
    upstream,
    cookie,
    send,
    connection,
    call: (method, path, init = {}) =>
      send(method, path, {
        ...init,
        headers: {
          cookie,
          'x-csrf': '1',
          ...init.headers,
        },
      }),
    async raw(bytes) {
      const socket = await connection()
      socket.write(bytes, 'latin1')
      // In halves, because what has arrived while this process stood still is read after its timers have run.
      let isHalf = false
      socket.on('data', () => (isHalf = false))
      socket.on('timeout', () => {
        if (isHalf) return void socket.destroy()
        isHalf = true
        socket.setTimeout(HALF_A_SILENCE_MS)
      })
      socket.setTimeout(HALF_A_SILENCE_MS)
      return readAll(socket)
    },
  }
}

/** Every byte until the peer closes the connection. */
export async function readAll(socket: Socket): Promise<string> {
  let text = ''
  socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')))
  if (!socket.destroyed) await nextEvent(socket, 'close')
  return text
}

/** One request on a connection of its own. */
export async function sendTo(port: number, method: string, path: string, init: CallInit = {}): Promise<Answer> {
  const { body, headers = {} } = init
  const outgoing = httpRequest({ port, host: '127.0.0.1', method, path, headers, agent: false })
  const isBuffer = typeof body === 'string' || Buffer.isBuffer(body)
  if (isBuffer && headers['transfer-encoding'] === undefined) {
    outgoing.setHeader('content-length', Buffer.byteLength(body))
  }
  const answered = nextEvent(outgoing, 'response')
  // The response may come before the whole body is sent. An error of the rest does not matter then.
  outgoing.on('error', () => undefined)
  if (body === undefined || isBuffer) outgoing.end(body)
  else body.pipe(outgoing)
  const [response] = (await answered) as [IncomingMessage]
  const chunks: Buffer[] = []
  for await (const chunk of response) chunks.push(chunk as Buffer)
  const bytes = Buffer.concat(chunks)
  const text = bytes.toString()
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    bytes,
    text,
    get json() {
      return JSON.parse(text) as Record<string, unknown>
    },
  }
}
