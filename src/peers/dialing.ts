import dns, { type LookupAddress } from 'node:dns'
import { connect, isIP, type Socket, type TcpNetConnectOpts } from 'node:net'
import type { SecureContextOptions, TLSSocket } from 'node:tls'
import { buildConnector, errors } from 'undici'
import { judgeAfter } from '../time/judge-after.ts'
import { resetWhenGivenUp } from './given-up.ts'
import { names, type Peer } from './names.ts'
import { noteSilence } from './silent-addresses.ts'

/**
 * How long an address is tried before the next one, if there is a next one. The first packet of a connection is repeated after
 * a second if it is lost (RFC 6298 §2), and the answer needs time, too.
 */
const ATTEMPT_MS = 1250
/** After this part of the whole time, all addresses have been tried. */
const ATTEMPTS_SHARE = 0.6

/** So many attempts may go on beside a later one of their connection. Each takes a file descriptor while no address answers. */
const MAX_BESIDE = 1024

/** Where a connection goes, and how long it may take. */
interface Destination {
  readonly host: string
  readonly port: number
  readonly timeoutMs: number
  readonly options?: Partial<TcpNetConnectOpts>
}

/** Called once, with a connection or with the reason why there is none. */
type Dialed = (error: Error | null, socket: Socket | null) => void

/** How long an address is tried before the next of so many. */
function attemptMs(addresses: number, timeoutMs: number): number {
  return Math.min(ATTEMPT_MS, Math.ceil((timeoutMs * ATTEMPTS_SHARE) / Math.max(1, addresses - 1)))
}

/**
 * Opens a TCP connection to a peer. If its host has several addresses, the next one is tried once the one before has failed or
 * has been silent for a while, and the first to connect wins (RFC 8305 §5): an attempt has the whole time.
 * @returns ends the attempts; `dialed` is not called then
 */
export function dial(peer: Peer, destination: Destination, dialed: Dialed): () => void {
  const { host } = destination
  const attempts = new Attempts(destination, dialed)
  const family = isIP(host)
  if (family !== 0) attempts.begin([{ address: host, family }])
  else {
    names.for(peer)(host, { all: true, hints: dns.ADDRCONFIG }, (error, addresses) => {
      attempts.begin(addresses as LookupAddress[], error ?? undefined)
    })
  }
  return () => attempts.end()
}

/**
 * How a library that takes no connections opens those to a peer: names are looked up without taking other peers' places, and each
 * of several addresses gets a fair part of the time. By default, Node would give all but the last one 250 ms, from Node 26 on
 * 500 ms. Node gives an attempt up before it begins the next one. So only the last address has the whole time, unlike with
 * {@link dial}.
 * @param timeoutMs the time limit of the whole, which the caller keeps
 */
export function dialing(peer: Peer, timeoutMs: number) {
  return {
    lookup: names.for(peer),
    autoSelectFamily: true,
    autoSelectFamilyAttemptTimeout: attemptMs(2, timeoutMs),
  }
}

/** Has other connections try an address last, as silent, once TLS with it has taken as long as an attempt may. */
export function noteSlowTls(socket: TLSSocket, address: string | undefined): void {
  const endWait = judgeAfter(ATTEMPT_MS, () => noteSilence(address, true))
  const end = (): void => {
    endWait()
    // Of a connection that lasts, nothing here is kept.
    socket.off('secureConnect', end).off('close', end)
  }
  socket.on('secureConnect', end).on('close', end)
}

/** Options of {@link connector} beside the peer. */
interface ConnectorOptions {
  /** For name, connection and TLS together. */
  readonly timeoutMs: number
  /** Certificates, where the peer is not to be trusted, or does not trust, as usual. */
  readonly tls?: Pick<SecureContextOptions, 'ca' | 'cert' | 'key'>
  /** Whether what is given up must not reach the peer later: see {@link resetWhenGivenUp}. */
  readonly resets?: boolean
}

/** As undici would open its connections itself. */
const SOCKET = { highWaterMark: 65_536, noDelay: true, keepAlive: true, keepAliveInitialDelay: 60_000 }

/**
 * Opens the connections of an undici client or agent, over HTTP/1.1 alone.
 * @param peerOf whose name a host is
 */
export function connector(
  peerOf: Peer | ((host: string) => Peer),
  { timeoutMs, tls, resets = false }: ConnectorOptions,
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
      const { remoteAddress } = wire
      if (!isTls) {
        noteSilence(remoteAddress, false)
        if (resets) resetWhenGivenUp(wire)
        return callback(null, wire)
      }
      // Its types do not say what it returns.
      const socket = secure({ ...options, httpSocket: wire }, (...result) => {
        endWait()
        // The next connection tries the other addresses before.
        noteSilence(remoteAddress, result[0] !== null)
        callback(...result)
      }) as unknown as TLSSocket
      noteSlowTls(socket, remoteAddress)
      if (resets) resetWhenGivenUp(wire, socket)
      const endWait = judgeAfter(endsAt - performance.now(), () => socket.destroy(connectTimeout(destination)))
    })
  }
}

/** The attempts of this process that go on beside a later one. */
let beside = 0

class Attempts {
  readonly #destination: Destination
  readonly #dialed: Dialed
  readonly #startedAt = performance.now()
  /** The addresses that have not been tried. */
  #left: LookupAddress[] = []
  #attemptMs = 0
  /** The attempts under way, with their addresses. */
  readonly #open = new Map<Socket, string>()
  readonly #errors: NodeJS.ErrnoException[] = []
  /** Of all attempts in {@link beside}, those of this connection. */
  #beside = 0
  #endWait: (() => void) | undefined
  readonly #endLimit: () => void
  #isOver = false

  constructor(destination: Destination, dialed: Dialed) {
    this.#destination = destination
    this.#dialed = dialed
    this.#endLimit = judgeAfter(destination.timeoutMs, () => this.#settle(this.#lateness(), null))
  }

  /** @param error why there are no addresses */
  begin(addresses: LookupAddress[], error?: Error): void {
    if (error !== undefined) return this.#settle(error, null)
    this.#left = addresses
    this.#attemptMs = attemptMs(addresses.length, this.#destination.timeoutMs)
    this.#tryNext()
  }

  end(): void {
    this.#isOver = true
    this.#endWait?.()
    this.#endLimit()
    this.#giveUp()
  }

  #giveUp(): void {
    for (const socket of this.#open.keys()) socket.destroy()
    this.#open.clear()
    this.#count()
  }

  #count(): void {
    beside -= this.#beside
    this.#beside = Math.max(0, this.#open.size - 1)
    beside += this.#beside
  }

  #settle(...outcome: Parameters<Dialed>): void {
    if (this.#isOver) return
    this.end()
    this.#dialed(...outcome)
  }

  #tryNext(): void {
    this.#endWait?.()
    const next = this.#isOver ? undefined : this.#left.shift()
    if (next !== undefined) this.#try(next.address)
    else if (this.#open.size === 0) this.#settle(this.#failure(), null)
  }

  #try(address: string): void {
    const { port, options } = this.#destination
    if (beside >= MAX_BESIDE) this.#giveUp()
    const socket = connect({ ...options, host: address, port })
    this.#open.set(socket, address)
    this.#count()
    const failed = (error: Error): void => {
      this.#open.delete(socket)
      this.#count()
      this.#errors.push(error)
      this.#tryNext()
    }
    socket.once('error', failed).once('connect', () => {
      socket.off('error', failed)
      this.#open.delete(socket)
      this.#settle(null, socket)
    })
    if (this.#left.length === 0) return
    this.#endWait = judgeAfter(this.#attemptMs, () => {
      noteSilence(address, true)
      this.#tryNext()
    })
  }

  /** The error of the only address, or those of all, with the code of the first. */
  #failure(): Error {
    const [first, ...others] = this.#errors
    if (first !== undefined && others.length === 0) return first
    return Object.assign(new AggregateError(this.#errors), { code: first?.code })
  }

  /** Says what was going on when the time was over. */
  #lateness(): Error {
    const { host, port } = this.#destination
    const after = `after ${Math.round(performance.now() - this.#startedAt)} ms`
    if (names.isUnresolved(host)) {
      const facts = { code: 'EAI_AGAIN', syscall: 'getaddrinfo', hostname: host }
      return Object.assign(new Error(`the name ${host} was not resolved ${after}`), facts)
    }
    const silent = [...this.#open.values()].map((address) => `connect ETIMEDOUT ${address}:${port}`)
    const texts = [...silent, ...this.#errors.map(({ message }) => message)]
    if (texts.length < 2) return connectTimeout(this.#destination)
    return new errors.ConnectTimeoutError(`no connection ${after}: ${texts.join(', ')}`)
  }
}

/** The error of undici for a connection that is not there in time. */
function connectTimeout({ host, port, timeoutMs }: Destination): Error {
  const where = `(attempted address: ${host}:${port}, timeout: ${timeoutMs}ms)`
  return new errors.ConnectTimeoutError(`Connect Timeout Error ${where}`)
}
