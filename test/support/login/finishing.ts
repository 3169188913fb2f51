import type { FastifyReply } from 'fastify'
import type { Test } from 'tap'
import { finishLogin } from '../../../src/login/finish-login.ts'
import { followStoreClock } from '../../../src/time/store-time.ts'
import { played } from './played.ts'

export const NOW = 1_700_000_000_000
export const [TOKEN_MS, SESSION_MS] = [3_600_000, 8_000_000]
export const FRONTEND = 'https://page.test'
export const CLIENT = '192.0.2.1'
export const REQUESTER = { reqId: 'request', client: CLIENT }
export const IDENTITY = { iss: 'https://issuer.test', sub: 'ada', issuedAt: NOW }
const LOGIN = { name: 'login', value: 'value', state: 'state' }
export const ENTRY = { entry: 'in the index' }
const REPLACED = new Map([
  ['old', undefined],
  ['older', 'old-id'],
])

const tag = (of?: string) => of && `tag of ${of}`
const ageMs = (): number => 7

/** A granted login whose parts a test plays: each takes a turn of the loop, then notes its call and does what `world` says. */
export function finishing(t: Test, flow: 'login' | 'signup' = 'login') {
  t.teardown(followStoreClock(() => NOW))
  const lines: unknown[][] = []
  const world: Record<string, (...args: unknown[]) => unknown> = { enlist: () => ENTRY, mayLive: () => true }
  const { calls, now, part } = played(world)
  const subjects = {
    enlist: part('enlist'),
    mayLive: part('mayLive'),
    withdraw: part('withdraw'),
    makeRoom: part('makeRoom'),
    identity: undefined as unknown,
  }
  const deps = {
    config: { frontendUrl: FRONTEND, scope: 'trade offline_access' },
    sessionMaxMs: SESSION_MS,
    sessions: {
      revoke: now('revoke'),
      end: part('end'),
      endReplaced: part('endReplaced'),
      discard: part('discard'),
      tag,
      subjectTag: tag,
      cookie: { name: 'session', attributes: (lifetimeMs: number) => ({ lifetimeMs }) },
    },
    subjects: subjects as typeof subjects | undefined,
    transactions: { settle: part('settle'), attributes: (loginMs: number) => ({ loginMs }) },
    attributionCookie: { name: 'partner', attributes: (partnerMs: number) => ({ partnerMs }) },
    metrics: {
      signupsCompleted: { inc: now('signup') },
      sessionsCreated: { inc: now('session') },
      logins: { inc: now('count') },
    },
  }
  const log = Object.fromEntries(
    ['info', 'warn', 'error'].map((level) => [level, (...args: unknown[]) => lines.push([level, ...args])]),
  )
  const session = { sessionId: 'id', encryptedSessionId: 'id.signed', set: now('record'), save: part('save') }
  const request = { ip: CLIENT, id: 'request', headers: { 'user-agent': 'browser' }, log, session } as object
  const reply = { setCookie: now('cookie'), redirect: now('redirect') } as unknown as FastifyReply
  const transaction = { flow, returnTo: '/trade', attributed: true, verifier: 'verifier', previous: [] }
  const ticket = { key: 'key', cookie: LOGIN, transaction, sealed: 'sealed' }
  const grant: Record<string, unknown> = {
    accessToken: 'access',
    refreshToken: 'refresh',
    expiresAt: NOW + TOKEN_MS,
    lifetimeGuessed: false,
    identity: IDENTITY,
  }
  const run = async (more: object = {}): Promise<void> => {
    const login = { deps, request, reply, ticket, query: new URLSearchParams(), ageMs, replaced: REPLACED, ...more }
    await finishLogin({ grant, ...login } as unknown as Parameters<typeof finishLogin>[0])
  }
  const has = (what: string): unknown[][] => calls.filter(([each]) => each === what)
  return { deps, subjects, world, calls, lines, grant, request, reply, now, part, run, has }
}
