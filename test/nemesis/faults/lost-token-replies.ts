import type { Fault } from '../fault.ts'
import type { Touch } from '../history.ts'
import { requestIn } from '../http.ts'
import { onLinks, refreshedBy } from '../whom.ts'

const SHARE = 0.4

/** Responses of the token endpoint are lost after it has used up a code or a refresh token. */
export const lostTokenReplies: Fault = {
  name: 'lost-token-replies',
  sentence:
    'The connection breaks when the provider has issued tokens, before the response: a rotated refresh token is used up.',
  apply(fleet, random) {
    const touches: Touch[] = [{ kinds: ['login', 'signup'], results: ['provider_unavailable'] }]
    const heal = onLinks(fleet.instances, 'provider', {
      of: (opening) => opening.startsWith('POST /oauth2/token '),
      cuts(way, _bytes, opening) {
        if (way !== 'reply' || random() > SHARE) return undefined
        const request = requestIn(Buffer.from(opening, 'latin1'))
        const user = typeof request === 'object' ? refreshedBy(fleet, request) : undefined
        // The token is used up, so the next refresh ends the session of this user.
        if (user !== undefined)
          touches.push({
            users: [user],
            results: ['provider_unavailable', 'session_expired', 'login_required'],
            settleMs: 60_000,
          })
        return 'before'
      },
    })
    return { note: 'responses of the token endpoint are lost', touches, settleMs: 2000, heal }
  },
}
