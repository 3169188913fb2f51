import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Config } from '../../config/config.ts'
import { Problem } from '../../problem.ts'
import type { Controls } from '../../controls/controls.ts'
import type { CallLimit } from '../../limits/call-limit.ts'
import { ID } from '../../http/known-paths.ts'
import { requesterOf } from '../../http/requester.ts'
import { isTokenAccepted, refusalSource, sharerOf, type Session } from '../../sessions/index.ts'
import { logFailure } from '../../telemetry/failure-log.ts'
import type { RestClients } from '../../upstream/rest-clients.ts'
import { after, CLOSE, closeOf } from '../close-codes.ts'
import { socketRoute, type Handshake, type Opened } from '../handshake.ts'
import type { SocketDependencies } from '../prepare-sockets.ts'
import type { SocketKind } from '../registry.ts'
import type { OpenSocket } from '../socket-end.ts'
import { OtpClient } from './otp.ts'
import { orderGate, type OrderGate } from './order-gate.ts'
import { Relay } from './relay.ts'
import { relayUser, type RelayUser } from './relay-user.ts'
import { openUpstreamSocket, PUBLIC_SOCKET_PATH } from '../upstream-socket.ts'

interface RelayDependencies extends SocketDependencies {
  readonly config: Pick<Config, 'relay' | 'feed' | 'upstream'>
  readonly clients: RestClients
  readonly otp: OtpClient
  /** Absent without API_REQUESTS_PER_MINUTE. */
  readonly callLimit: CallLimit | undefined
  /** Absent where operators have no token. */
  readonly controls: Controls | undefined
}

/** These are asked before a message of a browser is sent on. */
interface RelayChecks {
  readonly user?: RelayUser
  readonly gate?: OrderGate | undefined
}

/** `GET /ws/trading/:accountId` and, unless browsers share the market data, `GET /ws/public`. */
export async function relayRoutes(fastify: FastifyInstance, deps: Omit<RelayDependencies, 'otp'>): Promise<void> {
  const { relay, upstream, feed } = deps.config
  const relayDeps = { ...deps, otp: new OtpClient(deps.clients.oneTimeUrls, relay, upstream) }
  if (!feed.isShared) {
    socketRoute(fastify, '/ws/public', deps, {
      kind: 'public',
      open: (handshake) => openPublicRelay(handshake, relayDeps),
    })
  }
  socketRoute(fastify, '/ws/trading/:accountId', deps, {
    kind: 'trading',
    check: accountIdOf,
    open: (handshake) => openTradingRelay(handshake, accountIdOf(handshake.request), relayDeps),
  })
}

/** @throws Problem not_found for what cannot be an account's id */
function accountIdOf({ params }: FastifyRequest): string {
  const { accountId = '' } = params as { accountId?: string }
  if (!ID.test(accountId)) throw new Problem('not_found')
  return accountId
}

/** Opens the public market data socket. */
async function openPublicRelay(handshake: Handshake, deps: RelayDependencies): Promise<Opened | undefined> {
  if (!handshake.acquirePublic()) return
  return openUpstream(handshake, deps.config.relay.wsUrl + PUBLIC_SOCKET_PATH, deps)
}

/** Opens the trading socket of an account, for the session of the browser. */
async function openTradingRelay(
  handshake: Handshake,
  accountId: string,
  deps: RelayDependencies,
): Promise<Opened | undefined> {
  const { caps, sessions } = deps
  if (!handshake.acquire(caps.acquireProcess())) return
  const key = sessions.cookie.key(handshake.request.headers.cookie)
  if (key !== undefined && !handshake.acquire(caps.acquireOpening(key))) return
  const session = await handshake.authorize()
  if (session === undefined) return
  // Before the permit, since the session may end while that is claimed.
  handshake.endWith(session)
  handshake.withReturn = (close) => deps.returns?.refused(session.key, close) ?? close
  if (!handshake.acquire(await caps.acquireSession(session.key))) return
  if (!(await isCallAllowed(handshake, session, deps))) return
  const url = await oneTimeUrl(handshake, accountId, session, deps)
  if (url === undefined) return
  handshake.kind = kindOf(url)
  const gate = deps.controls && orderGate(deps.controls, session)
  const user = relayUser(deps.sessions, session)
  const opened = await openUpstream(handshake, url, deps, { user, gate })
  let current: Session | undefined
  try {
    current = opened && (await handshake.current(session))
  } finally {
    if (current === undefined) opened?.drop?.()
  }
  return current && opened
}

/** Counts the request for a one-time URL as a call of its session. False when the handshake is over. */
async function isCallAllowed(
  handshake: Handshake,
  session: Session,
  { callLimit }: RelayDependencies,
): Promise<boolean> {
  const verdict = await callLimit?.count(session.key)
  if (verdict?.is === 'refused') handshake.end(after(CLOSE.rateLimited, 1000 * verdict.retryAfterSeconds))
  return !handshake.isOver
}

/**
 * A fresh one-time URL. If upstream refuses the bearer, the token is renewed and the URL requested once more. A session that
 * has changed while the request waited is read again before anything is sent.
 */
async function oneTimeUrl(
  handshake: Handshake,
  accountId: string,
  session: Session,
  deps: RelayDependencies,
  mayRenew = true,
): Promise<URL | undefined> {
  const { request, signal } = handshake
  if (handshake.isOver) return
  const outcome = await deps.otp.request(accountId, session.record.accessToken, {
    id: request.id,
    signal,
    subject: sharerOf(session),
    source: () => refusalSource(session, request.ip),
    conditions: { session: () => deps.sessions.isCurrent(session) },
  })
  const status = outcome.is === 'url' ? 200 : outcome.is === 'refused' ? outcome.status : undefined
  if (status !== undefined && isTokenAccepted(status)) deps.sessions.noteAccepted(session)
  switch (outcome.is) {
    case 'url':
      return handshake.isOver ? undefined : outcome.url
    case 'refused': {
      const { close, why, cause } = outcome
      if (!handshake.isOver) {
        logFailure(request.log, 'no one-time URL for a relay', { why, code: close.code }, cause)
      }
      return handshake.end(close)
    }
    case 'stale': {
      const current = await handshake.current(session)
      return current && oneTimeUrl(handshake, accountId, current, deps, mayRenew)
    }
    case 'overBudget':
      return handshake.end(
        after(outcome.limited === 'user' ? CLOSE.upstreamLimit : CLOSE.upstreamBudget, outcome.retryAfterMs),
      )
    case 'unauthorized': {
      const found = await deps.sessions.renewAfterRefusal(session, mayRenew, requesterOf(request))
      if (found.is !== 'authorized') return handshake.end(closeOf(found))
      return oneTimeUrl(handshake, accountId, found.session, deps, false)
    }
  }
}

async function openUpstream(
  handshake: Handshake,
  url: URL | string,
  deps: RelayDependencies,
  checks: RelayChecks = {},
): Promise<Opened | undefined> {
  const { wsUrl, maxUpstreamMessageBytes } = deps.config.relay
  // One-time URLs may have hosts of their own (OTP_HOSTS), whose names may not keep market data waiting.
  const peer = new URL(url).hostname === new URL(wsUrl).hostname ? 'sockets' : 'other'
  const outcome = await openUpstreamSocket(url, maxUpstreamMessageBytes, handshake.signal, peer)
  if (outcome.is === 'open') return relayTo(outcome.connection, deps, checks)
  if (handshake.isOver) return
  const { why, cause, close } = outcome
  const { kind } = handshake
  logFailure(handshake.request.log, 'upstream refused a socket', { why, kind }, cause)
  return handshake.end(close)
}

/** Waits for the browser's socket, which is joined to this one. */
function relayTo(
  upstream: OpenSocket,
  { metrics, log, config, returns, registry }: RelayDependencies,
  checks: RelayChecks,
): Opened {
  return {
    join(browser, slot, { identity: { kind, reqId }, ended }) {
      // A public relay comes back without a one-time URL.
      const comesBack = kind === 'public' ? undefined : returns
      if (comesBack !== undefined) slot.onRelease(comesBack.join())
      slot.owner = new Relay(browser, upstream, {
        limits: config.relay,
        metrics,
        waiting: registry.waiting,
        rest: (wire, cut) => registry.rest(wire, cut),
        ...checks,
        withReturn: comesBack && ((close) => comesBack.closed(close)),
        onEnd(close, fault) {
          if (fault !== undefined) {
            logFailure(log.child({ reqId }), 'upstream broke the WebSocket protocol', { kind, why: fault })
          }
          ended(close)
        },
      })
    },
    drop: () => upstream.socket.terminate(),
  }
}

/** Demo or real, where the path of the one-time URL says so. */
function kindOf(url: URL): SocketKind {
  const last = url.pathname.split('/').at(-1)
  return last === 'demo' || last === 'real' ? last : 'trading'
}
