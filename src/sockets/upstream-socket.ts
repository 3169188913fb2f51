import type { ClientRequestArgs } from 'node:http'
import { isIP, type Socket } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { WebSocket } from 'ws'
import { dial, noteSlowTls } from '../peers/dialing.ts'
import type { Peer } from '../peers/names.ts'
import { noteSilence } from '../peers/silent-addresses.ts'
import { activeSpan, destinationOf, untraced, type Span } from '../telemetry/traces/span.ts'
import { judgeAfter } from '../time/judge-after.ts'
import { USER_AGENT } from '../upstream/headers.ts'
import { CLOSE, fromStatus, type CloseStatus } from './close-codes.ts'
import type { OpenSocket } from './socket-end.ts'
import { socketOptions } from './socket-options.ts'

/** The outcome of opening an upstream socket. */
type OpenOutcome =
  | { readonly is: 'open'; readonly connection: OpenSocket }
  /** `cause` shows whether the fault is this server's. Its text may contain the URL, so the log gets `why` instead. */
  | { readonly is: 'refused'; readonly close: CloseStatus; readonly why: string; readonly cause?: Error }

/** The path of the market data socket below WS_URL. */
export const PUBLIC_SOCKET_PATH = '/trading/v1/options/ws/public'
/** The path of every one-time URL in traces. */
const ONE_TIME = '/:one_time_url'
/** For everything: DNS, connection, TLS and the handshake. */
const OPEN_MS = 10_000
const HTTPS_PORT = 443
/** Defined here, so that an open socket does not keep the closure of its opening alive. */
const ignore = (): void => undefined

/**
 * Opens a socket to upstream, without cookie, Origin, bearer, compression or redirects. The socket is paused, so that no early
 * message is lost before the relay is joined.
 * @param url a text is the address of market data, and a URL a one-time URL, which is a credential
 * @param signal aborts the attempt
 * @param peer whose name the host of the URL is
 */
export function openUpstreamSocket(
  url: URL | string,
  maxMessageBytes: number,
  signal: AbortSignal,
  peer: Peer = 'sockets',
): Promise<OpenOutcome> {
  const span = beginSpan(url)
  return new Promise((resolve) => {
    const headers = asObject(span.carry(['user-agent', USER_AGENT]))
    // The socket outlives the request that opens it, and would keep its span.
    let endDialing = ignore
    let tcp: Socket | undefined
    let address: string | undefined
    const createConnection: ClientRequestArgs['createConnection'] = (to, connected) => {
      endDialing = connect(peer, to, (error, wire, carrier) => {
        tcp = carrier
        address = carrier?.remoteAddress
        connected(error, wire)
      })
      return undefined
    }
    const options = { ...socketOptions(maxMessageBytes), createConnection, followRedirects: false, headers }
    // It starts before the equally long limit of the connection, so that every silence closes the socket as a timeout.
    const endWait = judgeAfter(OPEN_MS, () => fail(CLOSE.upstreamTimeout, 'timeout'))
    const socket = untraced(() => new WebSocket(url, options))
    const abort = (): void => refuse(CLOSE.ourFault, 'aborted')
    const settle = (outcome: OpenOutcome): void => {
      endWait()
      endDialing()
      signal.removeEventListener('abort', abort)
      socket.removeAllListeners()
      // An error before the relay listens must not crash the process.
      socket.on('error', ignore)
      span.end(outcome.is === 'open' ? { status: 101 } : { error: outcome.why })
      resolve(outcome)
    }
    const refuse = (close: CloseStatus, why: string, cause?: Error): void => {
      settle({ is: 'refused', close, why, ...(cause && { cause }) })
      socket.terminate()
    }
    const fail: typeof refuse = (...why) => {
      noteSilence(address, true)
      refuse(...why)
    }
    signal.addEventListener('abort', abort)
    socket.once('upgrade', ({ socket: wire }) => {
      socket.once('open', () => {
        socket.pause()
        noteSilence(address, false)
        settle({ is: 'open', connection: { socket, wire, ...(tcp && { tcp }) } })
      })
    })
    // Only the code of the error is logged: its message may contain the URL.
    socket.once('error', (error: Error & { code?: string }) =>
      fail(CLOSE.upstreamUnreachable, error.code ?? error.name, error),
    )
    socket.once('unexpected-response', (_request, response) => {
      const { statusCode = 0, headers } = response.destroy()
      span.end({ status: statusCode })
      refuse(fromStatus(statusCode, headers['retry-after']), `status ${statusCode}`)
    })
    if (signal.aborted) abort()
  })
}

/**
 * Opens the connection that ws asks for, with TLS if it is for `wss:`.
 * @param connected gets it, and the TCP connection that carries it
 * @returns ends the attempt
 */
function connect(
  peer: Peer,
  { host, port, defaultPort }: ClientRequestArgs,
  connected: (error: Error | null, connection: Socket, tcp: Socket) => void,
): () => void {
  const name = host ?? ''
  return dial(peer, { host: name, port: Number(port), timeoutMs: OPEN_MS }, (error, wire) => {
    // Without a connection, only the error is looked at.
    if (wire === null || defaultPort !== HTTPS_PORT) return connected(error, wire as Socket, wire as Socket)
    const secure = connectTls({ socket: wire, host: name, servername: isIP(name) === 0 ? name : '' })
    noteSlowTls(secure, wire.remoteAddress)
    readAlone(secure)
    connected(null, secure, wire)
  })
}

/**
 * Copies each read into memory of its own, which it has without TLS. From 24.22 on, Node cuts the reads of all connections with TLS
 * from shared buffers of 64 KiB. A message that waits for a slow browser would keep such a buffer alive, and nothing would tell which
 * message is the last of a read, or whether a whole frame may be sent on.
 */
function readAlone(connection: TLSSocket): void {
  const push = connection.push.bind(connection)
  connection.push = (read: Buffer | null, encoding) => {
    if (read === null || read.length === read.buffer.byteLength) return push(read, encoding)
    const alone = Buffer.allocUnsafeSlow(read.length)
    alone.set(read)
    return push(alone, encoding)
  }
}

function beginSpan(url: URL | string): Span {
  const { origin, pathname } = new URL(url)
  const template = typeof url === 'string' ? pathname : ONE_TIME
  return activeSpan().call({ method: 'GET', template, to: destinationOf(origin) })
}

/** A flat list of names and values, as ws wants it. */
function asObject(headers: readonly string[]): Record<string, string> {
  const found: Record<string, string> = {}
  for (let at = 0; at < headers.length; at += 2) found[headers[at] ?? ''] = headers[at + 1] ?? ''
  return found
}
