import type { Fault } from '../fault.ts'
import type { Fleet } from '../fleet.ts'
import { headerOf, jsonResponse, type SeenRequest } from '../http.ts'
import { calledBy, oneOf, onLinks, refreshedBy, someUsers } from '../whom.ts'
import { REFUSALS, refusing } from './refused-refreshes.ts'

/** These end no session soon. A new login would show at once that the provider works. */
const CODES: ReadonlySet<string> = new Set(['invalid_request', 'not_known_here'])
const REFUSED = REFUSALS.filter(({ error }) => CODES.has(error))
const UNAUTHORIZED = jsonResponse(401, { errors: [{ status: 401, code: 'Unauthorized', message: 'By the nemesis.' }] })
/** So many refusals one after the other are a lot, and for so long after each more (ms). */
const MANY = 5
const SOON_MS = 700
/** A token that has just been renewed is not renewed again so soon. */
const RENEWED_MS = 31_000
const TOKEN = '/oauth2/token'

/** The provider renews no tokens of most users. */
export const manyRefusedRefreshes: Fault = {
  name: 'many-refused-refreshes',
  sentence:
    'Upstream takes no token any more, and the provider refuses to renew those of all users but one, with an error code that concerns each of them: that one goes on as if nothing had happened.',
  fits: ({ refreshTokens, accessTokenSeconds }) => refreshTokens && accessTokenSeconds * 1000 > RENEWED_MS,
  lastsMs: { least: 5000, most: 15_000 },
  apply(fleet, random) {
    const all = someUsers(fleet, random, Infinity)
    const well = all.find((user) => isWell(fleet, user))
    const refused = all.filter((user) => user !== well)
    const { note, touches, settleMs, heal } = refusing(fleet, refused, oneOf(REFUSED, random))
    const ends = expiring(fleet, refused, well)
    return {
      note,
      touches: [...touches, { users: all, results: ['credential_renewed'] }],
      settleMs,
      async heal() {
        ends.forEach((end) => end())
        await heal()
      },
    }
  },
}

/** Upstream refuses each token of the refused users once, and that of the other one when many of them have just been refused. */
function expiring(fleet: Fleet, refused: readonly string[], well: string | undefined): (() => void)[] {
  const { now } = fleet.observer
  const seen = new Set<string | undefined>()
  let refusals = 0
  let manyAt = -Infinity
  const answers = (request: SeenRequest): string | undefined => {
    const user = calledBy(fleet, request) ?? ''
    const token = headerOf(request.head, 'authorization')
    const isDue = refused.includes(user) || (user === well && now() < manyAt + SOON_MS)
    if (!isDue || seen.has(user === well ? user : token)) return undefined
    seen.add(user === well ? user : token)
    return UNAUTHORIZED
  }
  const counts = (request: SeenRequest): undefined => {
    // A login shows that the provider works.
    if (request.path === TOKEN && request.body.includes('authorization_code')) refusals = 0
    else if (refused.includes(refreshedBy(fleet, request) ?? '') && ++refusals >= MANY) manyAt = now()
  }
  return [onLinks(fleet.instances, 'upstream', { answers }), onLinks(fleet.instances, 'provider', { answers: counts })]
}

/** Whether a user makes orders with tokens that have not just been renewed: those upstream may refuse. */
function isWell({ observer: { now, history } }: Fleet, user: string): boolean {
  const session = history.calls.findLast((call) => call.user === user && call.kind === 'order')?.session
  const [, ...renewals] = history.tokenCalls.filter((call) => call.session === session)
  return session !== undefined && renewals.every(({ at }) => at < now() - RENEWED_MS)
}
