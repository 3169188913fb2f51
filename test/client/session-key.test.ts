import { test } from 'tap'
import { sessionKey } from '../../client/src/core/session/session-state.ts'

const ACTIVE = { status: 'active', session: 'one', expiresAt: 2, idleExpiresAt: 1, scope: 'trade' } as const

await test('a session has its key while it is active, and while the server cannot tell', (t) => {
  t.equal(sessionKey(ACTIVE), 'one')
  t.equal(sessionKey({ status: 'unavailable', last: ACTIVE }), 'one')
  t.equal(sessionKey({ status: 'unavailable' }), undefined)
  t.equal(sessionKey({ status: 'anonymous', reason: 'idle' }), undefined)
  t.equal(sessionKey({ status: 'unknown' }), undefined)
  t.end()
})
