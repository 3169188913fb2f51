import type { LookupFunction, TcpNetConnectOpts } from 'node:net'
import type { SecureContextOptions } from 'node:tls'
import { buildConnector } from 'undici'
import { names, type Peer } from './names.ts'

export type { Peer }

/**
 * How long an address is tried before the next one, if there is a next one. The first packet of a connection is repeated after
 * a second if it is lost (RFC 6298 §2), and the answer needs time, too.
 */
const ATTEMPT_MS = 1250
/** The largest part of the whole time that an address gets if there is a next one. */
const ATTEMPT_SHARE = 0.6

/** The options of every connection, for `net`, `tls`, `http` and what is built on them. */
export interface Dialing extends Pick<TcpNetConnectOpts, 'autoSelectFamily' | 'autoSelectFamilyAttemptTimeout'> {
  readonly lookup: LookupFunction
}

/**
 * How connections to a peer are opened: names are looked up without taking other peers' places, and each of several addresses
 * gets a fair part of the time. By default, Node would give all but the last one 250 ms.
 * @param timeoutMs the time limit of the whole, which the caller keeps
 */
export function dialing(peer: Peer, timeoutMs: number): Dialing {
  return {
    lookup: names.for(peer),
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: Math.min(ATTEMPT_MS, Math.ceil(timeoutMs * ATTEMPT_SHARE)),
  }
}

/** Options of {@link connector} beside the peer. */
interface ConnectorOptions {
  readonly timeoutMs: number
  /** Certificates, where the peer is not to be trusted, or does not trust, as usual. */
  readonly tls?: Pick<SecureContextOptions, 'ca' | 'cert' | 'key'>
}

/**
 * Opens the connections of an undici client or agent, over HTTP/1.1 alone.
 * @param peerOf whose name a host is
 */
export function connector(
  peerOf: Peer | ((host: string) => Peer),
  { timeoutMs, tls }: ConnectorOptions,
): buildConnector.connector {
  const connectFor = (peer: Peer): buildConnector.connector =>
    buildConnector({ ...tls, ...dialing(peer, timeoutMs), timeout: timeoutMs, allowH2: false })
  const connects = new Map<Peer, buildConnector.connector>()
  return (options, callback) => {
    const { hostname } = options
    const peer = typeof peerOf === 'string' ? peerOf : peerOf(hostname)
    const connect = connects.get(peer) ?? connectFor(peer)
    connects.set(peer, connect)
    const startedAt = performance.now()
    connect(options, (...result) => {
      const [error] = result
      if (error === null) callback(...result)
      else callback(failureOf(error, hostname, performance.now() - startedAt), null)
    })
  }
}

/** Whether a connection to this host has been waiting for its name to be looked up for more than a second. */
export function isUnresolved(host: string): boolean {
  return names.isUnresolved(host)
}

/** Says what a failure was about. Node's error for several addresses has no text, and undici's names the limit as the time. */
function failureOf(error: Error & { code?: string }, host: string, ms: number): Error {
  if (error.code !== 'UND_ERR_CONNECT_TIMEOUT') return error
  const after = `after ${Math.round(ms)} ms`
  if (names.isUnresolved(host)) return unresolved(host, after)
  const attempts: unknown[] = error.cause instanceof AggregateError ? error.cause.errors : []
  if (attempts.length === 0) return error
  const texts = attempts.map((attempt) => (attempt as Error).message)
  return Object.assign(new Error(`no connection ${after}: ${texts.join(', ')}`), { code: error.code })
}

function unresolved(host: string, after: string): Error {
  const facts = { code: 'EAI_AGAIN', syscall: 'getaddrinfo', hostname: host }
  return Object.assign(new Error(`the name ${host} was not resolved ${after}`), facts)
}
