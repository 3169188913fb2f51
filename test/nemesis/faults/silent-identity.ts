import type { Fault } from '../fault.ts'
import { onLinks } from '../whom.ts'

/** Upstream does not say whose a token is. */
export const silentIdentity: Fault = {
  name: 'silent-identity',
  sentence: 'Upstream does not answer the question whose a new session is, so that logins take three seconds longer.',
  fits: ({ isOpenId }) => isOpenId !== true,
  apply({ instances }) {
    return {
      note: 'nobody is identified',
      touches: [{ kinds: ['login', 'signup'], results: ['ok'] }],
      settleMs: 3500,
      heal: onLinks(instances, 'upstream', { answers: ({ path }) => (path === '/account/v1/me' ? '' : undefined) }),
    }
  },
}
