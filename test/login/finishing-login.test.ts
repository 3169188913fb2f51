import { test } from 'tap'
import { failureUrl } from '../../src/login/return-to.ts'
import { nameOf } from '../../src/oauth/login-identity.ts'
import { sessionKey } from '../../src/store/keys.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import {
  CLIENT,
  ENTRY,
  finishing,
  FRONTEND,
  IDENTITY,
  NOW,
  REQUESTER,
  SESSION_MS,
  TOKEN_MS,
} from '../support/login/finishing.ts'

const SESSION = sessionKey('id')
const ADA = nameOf(IDENTITY.iss, IDENTITY.sub)
const AWAY = new StoreUnavailable('away')
const lose = (): never => {
  throw AWAY
}
const BY = { requester: REQUESTER, subjectTag: `tag of ${ADA}` }
const OUTCOME = {
  is: 'finished',
  flow: 'login',
  returnTo: '/trade',
  session: SESSION,
  cookieValue: 'id.signed',
  endsAt: NOW + SESSION_MS,
  cookieEndsAt: NOW + SESSION_MS,
}
const FAILED = ['redirect', failureUrl(FRONTEND, 'login_failed', { flow: 'login', returnTo: '/trade' }), 303]

await test('a session is in the index of its subject before it is saved, and its cookie is set when all else is done', async (t) => {
  const { calls, lines, run, request } = finishing(t)
  await run()
  const record = {
    accessToken: 'access',
    tokenExpiresAt: NOW + TOKEN_MS,
    tokenLifetimeMs: TOKEN_MS,
    refreshToken: 'refresh',
    scope: 'trade offline_access',
    endsAt: NOW + SESSION_MS,
    loginKey: 'key',
    subject: ADA,
    oidc: IDENTITY,
  }
  const endsAt = NOW + SESSION_MS
  const [enlist, ...others] = calls
  const entry = { subject: ADA, id: 'id', endsAt, client: CLIENT, userAgent: 'browser', identity: IDENTITY }
  t.strictSame(enlist, ['enlist', entry])
  const [first, save, mayLive, ...rest] = others
  t.strictSame([first, save], [['record', 'record', record], ['save']])
  const [what, asked, ageMs] = mayLive ?? []
  t.strictSame([what, asked], ['mayLive', ENTRY])
  t.equal((ageMs as () => number)(), 7, 'the age of the callback')
  const [settle, ...after] = rest
  t.strictSame([settle?.[0], settle?.[2]], ['settle', OUTCOME])
  t.match(settle?.[1], { key: 'key' })
  t.strictSame(after, [
    ['endReplaced', 'old', { requester: REQUESTER, id: undefined }],
    ['endReplaced', 'older', { requester: REQUESTER, id: 'old-id' }],
    ['makeRoom', ENTRY, REQUESTER],
    ['cookie', 'session', 'id.signed', { lifetimeMs: SESSION_MS }],
    ['cookie', 'login', 'value.f', { loginMs: SESSION_MS }],
    ['session'],
    ['count', { flow: 'login', outcome: 'finished' }],
    ['redirect', `${FRONTEND}/trade`, 303],
  ])
  const names = { sessionTag: `tag of ${SESSION}`, subjectTag: `tag of ${ADA}` }
  t.match(request, names)
  const line = { audit: 'login', flow: 'login', session: names.sessionTag, subject: names.subjectTag, client: CLIENT }
  t.match(lines, [['info', line]])
  t.equal(lines.length, 1)
})

await test('a sign-up is counted with its attribution, and ends the remembered partner link', async (t) => {
  const { run, has, deps } = finishing(t, 'signup')
  deps.subjects = undefined
  await run()
  t.strictSame(has('signup'), [['signup', { attributed: 'true' }]])
  t.strictSame(has('cookie').at(-1), ['cookie', 'partner', '', { partnerMs: 0 }])
  t.strictSame(has('count'), [['count', { flow: 'signup', outcome: 'finished' }]])
  t.match(has('settle')[0]?.[2], { flow: 'signup' })
})

await test('a session without a refresh token ends with its access token; its cookie may stay longer', async (t) => {
  const { run, has, grant } = finishing(t)
  delete grant['refreshToken']
  await run()
  t.match(has('settle')[0]?.[2], { endsAt: NOW + TOKEN_MS, cookieEndsAt: NOW + SESSION_MS })
  t.match(has('enlist')[0]?.[1], { endsAt: NOW + TOKEN_MS })
  t.strictSame(
    has('cookie').map(([, , , attributes]) => attributes),
    [{ lifetimeMs: SESSION_MS }, { loginMs: TOKEN_MS }],
  )
})

await test('without OpenID Connect, upstream says whose session it is', async (t) => {
  const { run, has, grant, subjects, request } = finishing(t)
  delete grant['identity']
  const asked: unknown[][] = []
  subjects.identity = { ask: async (...args: unknown[]) => (asked.push(args), 'eve') }
  await run()
  t.equal(asked[0]?.[0], 'access')
  t.equal(asked[0]?.[1], request)
  t.match(has('enlist')[0]?.[1], { subject: 'eve', identity: undefined })
  t.match(has('record')[0]?.[2], { subject: 'eve' })
  t.match(request, { subjectTag: 'tag of eve' })
})

await test('a session without a subject is in no index; neither is one where no subject is indexed', async (t) => {
  for (const [hasIndex, hasIdentity] of [
    [true, false],
    [false, false],
    [false, true],
  ] as const) {
    const { run, has, calls, grant, deps } = finishing(t)
    if (!hasIndex) deps.subjects = undefined
    if (!hasIdentity) delete grant['identity']
    await run()
    t.strictSame([has('enlist'), has('mayLive'), has('makeRoom')], [[], [], []])
    const record = Object(has('record')[0]?.[2])
    t.strictSame(['subject' in record, 'oidc' in record], [hasIdentity, hasIdentity])
    t.match(calls.at(-1), ['redirect', `${FRONTEND}/trade`, 303])
  }
})

await test('a session that a logout of its subject has ended meanwhile ends, its tokens too, and the login fails', async (t) => {
  const { run, world, calls, has, lines } = finishing(t)
  world['mayLive'] = () => false
  await run()
  const at = calls.findIndex(([what]) => what === 'mayLive')
  const failed = { is: 'failed', error: 'login_failed', flow: 'login', returnTo: '/trade', previous: [] }
  const [end, revoke, count, settle, ...rest] = calls.slice(at + 1)
  t.strictSame(end, ['end', SESSION, 'revoked', BY])
  t.match(revoke, ['revoke', { accessToken: 'access' }])
  t.strictSame(count, ['count', { flow: 'login', outcome: 'login_failed' }])
  t.strictSame([settle?.[0], settle?.[2]], ['settle', failed])
  t.strictSame(rest, [FAILED])
  t.match(lines, [['warn', { audit: 'login_failed', reason: 'ended', flow: 'login' }]])
  t.strictSame(has('cookie'), [])
})

await test('after a loss of the store at any step, neither the session nor its entry nor its tokens are left', async (t) => {
  for (const step of ['save', 'mayLive', 'settle', 'endReplaced'] as const) {
    const { run, world, calls, has } = finishing(t)
    world[step] = lose
    await t.rejects(run(), AWAY, step)
    const last = calls.slice(-3)
    t.strictSame(last.slice(0, 2), [
      ['discard', SESSION, BY],
      ['withdraw', ENTRY],
    ])
    t.match(last[2], ['revoke', { accessToken: 'access' }])
    t.strictSame([has('makeRoom'), has('cookie'), has('redirect')], [[], [], []])
  }
})

await test('a session that may not live, and cannot be ended now, is not reported as ended', async (t) => {
  const { run, world, has } = finishing(t)
  world['mayLive'] = () => false
  world['end'] = () => Promise.reject(AWAY)
  await t.rejects(run(), AWAY)
  t.equal(has('redirect').length, 0)
})

await test('without a subject, a lost login has no entry to withdraw; a lost index leaves no session to end', async (t) => {
  const plain = finishing(t)
  delete plain.grant['identity']
  plain.world['save'] = () => Promise.reject(AWAY)
  await t.rejects(plain.run(), AWAY)
  t.strictSame(plain.has('withdraw'), [])
  t.strictSame(plain.has('discard'), [['discard', SESSION, { requester: REQUESTER, subjectTag: undefined }]])
  const lost = finishing(t)
  lost.world['enlist'] = () => Promise.reject(AWAY)
  await t.rejects(lost.run(), AWAY)
  t.strictSame(lost.calls.slice(1), [['revoke', lost.grant]])
})

await test('a login stands even if the sessions beyond the limit cannot be ended', async (t) => {
  const { run, world, calls, lines } = finishing(t)
  world['makeRoom'] = () => Promise.reject(AWAY)
  await run()
  t.match(calls.at(-1), ['redirect', `${FRONTEND}/trade`, 303])
  t.match(lines[0], ['warn', { cause: AWAY }, 'sessions beyond the limit could not be ended'])
})
