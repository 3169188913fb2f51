import type { LookupFunction, TcpNetConnectOpts } from 'node:net'
import type { SecureContextOptions, TLSSocket } from 'node:tls'
import { buildConnector } from 'undici'
import { judgeAfter } from '../time/judge-after.ts'
import { attemptMs, connectTimeout, dial } from './dial.ts'
import { names, type Peer } from './names.ts'

export type { Peer }

/** The options of connections that a library opens, for `net`, `tls`, `http` and what is built on them. */
export interface Dialing extends Pick<TcpNetConnectOpts, 'autoSelectFamily' | 'autoSelectFamilyAttemptTimeout'> {
  readonly lookup: LookupFunction
}

/**
 * How a library that takes no connections opens those to a peer: names are looked up without taking other peers' places, and each
 * of several addresses gets a fair part of the time. By default, Node would give all but the last one 250 ms. As Node gives an
 * attempt up before it begins the next one, no address but the last has the whole time, as it has with {@link dial}.
 * @param timeoutMs the time limit of the whole, which the caller keeps
 */
export function dialing(peer: Peer, timeoutMs: number): Dialing {
  return {
    lookup: names.for(peer),
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: attemptMs(2, timeoutMs),
  }
}

/** Options of {@link connector} beside the peer. */
interface ConnectorOptions {
  /** For name, connection and TLS together. */
  readonly timeoutMs: number
  /** Certificates, where the peer is not to be trusted, or does not trust, as usual. */
  readonly tls?: Pick<SecureContextOptions, 'ca' | 'cert' | 'key'>
}

/** As undici would open its connections itself. */
const SOCKET = { highWaterMark: 65_536, noDelay: true, keepAlive: true, keepAliveInitialDelay: 60_000 }

/**
 * Opens the connections of an undici client or agent, over HTTP/1.1 alone.
 * @param peerOf whose name a host is
 */
export function connector(
  peerOf: Peer | ((host: string) => Peer),
  { timeoutMs, tls }: ConnectorOptions,
): buildConnector.connector {
  const secure = buildConnector({ ...tls, timeout: 0, allowH2: false })
  return (options, callback) => {
    const { hostname: host, protocol } = options
    const peer = typeof peerOf === 'string' ? peerOf : peerOf(host)
    const isTls = protocol === 'https:'
    const endsAt = performance.now() + timeoutMs
    const destination = { host, port: Number(options.port) || (isTls ? 443 : 80), timeoutMs, options: SOCKET }
    dial(peer, destination, (error, wire) => {
      if (wire === null) return callback(error ?? new Error('no connection'), null)
      if (!isTls) return callback(null, wire)
      // Its types do not say what it returns.
      const socket = secure({ ...options, httpSocket: wire }, (...result) => {
        endWait()
        callback(...result)
      }) as unknown as TLSSocket
      const endWait = judgeAfter(endsAt - performance.now(), () => socket.destroy(connectTimeout(destination)))
    })
  }
}

/** Whether a connection to this host has been waiting for its name to be looked up for more than a second. */
export function isUnresolved(host: string): boolean {
  return names.isUnresolved(host)
}
