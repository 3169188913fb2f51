import type { FastifyInstance, FastifyReply } from 'fastify'
import type { RawQuery } from '../http/server.ts'
import { callbackError } from '../oauth/grant-outcome.ts'
import { failureUrl } from './return-to.ts'
import { failLogin, failureOf, type Callback } from './failed-login.ts'
import { finishLogin, setLoginCookies, type FinishedLogin, type ReplacedSessions } from './finish-login.ts'
import type { LoginDependencies } from './login-dependencies.ts'
import type { Consumption, LoginTicket } from './login-transactions.ts'

/** `GET /auth/callback`: finishes a login. Whatever happens, a navigation ends with a redirect to the frontend. */
export async function callbackRoute(fastify: FastifyInstance, deps: LoginDependencies): Promise<void> {
  await deps.sessions.registerWriter(fastify)
  fastify.get<{ Querystring: RawQuery }>('/auth/callback', async (request, reply) => {
    deps.guard.requireNavigation(request)
    const query = new URLSearchParams(request.query.text)
    const callback = { deps, request, reply, query, ageMs: startStopwatch() }
    try {
      return await handleCallback(callback)
    } catch (cause) {
      return failLogin(callback, failureOf(cause))
    }
  })
}

/**
 * Starts to measure a time.
 * @returns a function that returns how long ago that was (ms), by the clock of this process that says more: the monotonic one
 * may stand still while the machine is suspended, and the time of day may be set back
 */
export function startStopwatch(): () => number {
  const [startedAt, startedAtTimeOfDay] = [performance.now(), Date.now()]
  return () => Math.max(performance.now() - startedAt, Date.now() - startedAtTimeOfDay)
}

async function handleCallback(callback: Callback): Promise<FastifyReply> {
  const { deps, request, query } = callback
  const [state, ...moreStates] = query.getAll('state')
  const [error, ...moreErrors] = query.getAll('error')
  if (state === undefined && error !== undefined) {
    return failLogin(callback, { error: moreErrors.length > 0 ? 'login_failed' : callbackError(error) })
  }
  if (state === undefined || moreStates.length > 0) return failLogin(callback, { error: 'state_mismatch' })

  const { transactions } = deps
  const { cookie: cookies } = request.headers
  // A browser without this login's cookie has no part in it. It costs no round trip to the store.
  if (!transactions.knows(cookies, state)) return failLogin(callback, { error: 'state_mismatch' })
  // Read before this login goes on: otherwise two logins that finish at the same moment could end each other's sessions.
  const earlier = await transactions.otherSessions(cookies, state)
  // Atomic over all instances: of two callbacks at the same moment one is fresh, and the other waits for its outcome.
  const consumed = await transactions.consume(cookies, state)
  switch (consumed.is) {
    case 'unknown':
      return failLogin(callback, { error: 'state_mismatch' })
    case 'abandoned':
      return failLogin(callback, { error: 'login_failed', known: consumed })
    case 'replayed':
      return replay(callback, consumed)
    case 'fresh': {
      const { ticket } = consumed
      return exchange(callback, ticket, replacedBy(deps, ticket, earlier))
    }
  }
}

/** This browser's sessions that a login replaces. Where its cookies name them as well, the log can say whose they were. */
function replacedBy(
  { sessions }: LoginDependencies,
  { transaction }: LoginTicket,
  earlier: ReadonlyMap<string, string | undefined>,
): ReplacedSessions {
  const replaced = new Map<string, string | undefined>(transaction.previous.map((key) => [key, undefined]))
  for (const [key, cookieValue = ''] of earlier) replaced.set(key, sessions.cookie.verify(cookieValue))
  return replaced
}

/** Exchanges the code for tokens. Only the first callback of a login gets here, so a code is sent once. */
async function exchange(callback: Callback, ticket: LoginTicket, replaced: ReplacedSessions): Promise<FastifyReply> {
  const { provider } = callback.deps
  const { transaction, cookie } = ticket
  try {
    const { state, startedAt } = cookie
    const { verifier, nonce } = transaction
    const outcome = await provider.exchange(callback.request.query.text, { state, verifier, nonce, startedAt })
    switch (outcome.is) {
      case 'unavailable':
      case 'refused':
        return await failLogin(callback, { error: outcome.code, cause: outcome.cause, ticket })
      case 'granted':
        return await finishLogin({ ...callback, ticket, grant: outcome.grant, replaced })
    }
  } catch (cause) {
    return failLogin(callback, { ...failureOf(cause), ticket })
  }
}

/** A callback that was repeated by a reload, the back button or a restored tab. It exchanges no code and changes no session. */
async function replay(
  { deps, reply }: Callback,
  { outcome, waited, cookie }: Extract<Consumption, { is: 'replayed' }>,
): Promise<FastifyReply> {
  const { frontendUrl } = deps.config
  if (outcome.is === 'failed') return reply.redirect(failureUrl(frontendUrl, outcome.error, outcome), 303)
  // After a reload in the middle of the exchange the browser ignores the first response, so this one must set the cookies.
  if (waited && (await mayLive(deps, outcome))) setLoginCookies(deps, reply, cookie, outcome)
  return reply.redirect(frontendUrl + outcome.returnTo, 303)
}

/** Whether its session may still live: a newer login or a logout may have ended it. True while the store is away. */
async function mayLive({ sessions }: LoginDependencies, { cookieValue }: FinishedLogin): Promise<boolean> {
  const id = sessions.cookie.verify(cookieValue)
  return id !== undefined && (await sessions.reread({ id })).is !== 'none'
}
