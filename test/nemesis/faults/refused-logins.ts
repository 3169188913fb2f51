import type { Fault } from '../fault.ts'
import { jsonResponse } from '../http.ts'
import { oneOf, onLinks } from '../whom.ts'

/** What the token endpoint says to a code, and what a page is told then (docs/upstream.md, Token endpoint). */
const REFUSALS = [
  { status: 400, error: 'invalid_grant', told: 'invalid_grant' },
  { status: 403, error: 'access_denied', told: 'login_failed' },
  { status: 401, error: 'invalid_client', told: 'invalid_client' },
  { status: 400, error: 'invalid_request', told: 'login_failed' },
  { status: 503, error: 'temporarily_unavailable', told: 'provider_unavailable' },
  { status: 429, error: 'slow_down', told: 'try_later' },
] as const
const SHARE = 0.7

/** The provider gives no tokens for codes. */
export const refusedLogins: Fault = {
  name: 'refused-logins',
  sentence: 'The provider refuses most exchanges of a code, with any error code; what users have goes on.',
  apply(fleet, random) {
    const { status, error, told } = oneOf(REFUSALS, random)
    return {
      note: `the provider answers logins with ${status} ${error}`,
      touches: [{ kinds: ['login', 'signup'], results: [told] }],
      settleMs: 500,
      heal: onLinks(fleet.instances, 'provider', {
        answers: ({ path, body }) =>
          path === '/oauth2/token' && body.includes('grant_type=authorization_code') && random() < SHARE
            ? jsonResponse(status, { error })
            : undefined,
      }),
    }
  },
}
