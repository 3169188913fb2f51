import { setImmediate as nextTurn } from 'node:timers/promises'
import { test } from 'tap'
import { START_WINDOW_SECONDS } from '../../src/limits/start-limit.ts'
import { sessionKey } from '../../src/store/keys.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { OWN, sessionRoutesOf } from '../support/login/session-routes-of.ts'

const AWAY = new StoreUnavailable('away')
const BY = { client: '127.0.0.1' }
const lose = (): unknown => Promise.reject(AWAY)

await test('POST /auth/logout ends the session, its login and its cookie, whatever its body says it is', async (t) => {
  const { ask, calls, tags } = await sessionRoutesOf(t)
  for (const type of [undefined, 'json', 'application/json', 'text/plain']) {
    const more = type === undefined ? {} : { payload: '{', headers: { cookie: 'cookies', 'content-type': type } }
    t.strictSame(await ask('POST', '/auth/logout', more), { status: 204, body: undefined }, type ?? 'none')
    t.match(calls, [
      ['script'],
      ['settled', 'cookies'],
      ['endById', 'own', 'logout', true, BY],
      ['forget', ['own-login']],
      ['cookie', 'session', '', { path: '/session' }],
    ])
    t.equal(calls.length, 5)
    t.match(tags, [[`tag of ${sessionKey('own')}`]])
  }
})

await test('POST /auth/logout everywhere ends the other sessions first, and says where they are not known', async (t) => {
  const { ask, calls, lines, has } = await sessionRoutesOf(t)
  t.strictSame(await ask('POST', '/auth/logout?everywhere=true'), { status: 204, body: undefined })
  t.match(calls.slice(1, 4), [
    ['read', 'cookies'],
    ['endAll', 'ada', { reason: 'logout', requester: BY }, OWN],
    ['settled', 'cookies'],
  ])
  const line = { audit: 'logout_everywhere', ended: 3, session: 'own-tag', subject: 'ada-tag', ...BY }
  t.match(lines, [['info', line]])
  t.equal(has('endById').length, 1)
  for (const [without, session] of [
    [{ subjects: undefined }, OWN],
    [{}, { ...OWN, record: {} }],
    [{}, undefined],
  ] as const) {
    const other = await sessionRoutesOf(t, without)
    other.world['read'] = () => (session === undefined ? { is: 'none' } : { is: 'found', session })
    await other.ask('POST', '/auth/logout?everywhere=true')
    t.match(other.errors, [{ code: 'subject_unknown' }])
    t.strictSame([other.has('endAll'), other.has('endById').length], [[], 1], 'its own session has ended')
  }
  const again = await sessionRoutesOf(t)
  again.world['read'] = () => ({ is: 'none' })
  again.world['ofEnded'] = (id) => id === 'id of cookies' && 'ada'
  t.equal((await again.ask('POST', '/auth/logout?everywhere=true')).status, 204, 'it has ended a moment ago')
  t.match(again.has('endAll'), [['endAll', 'ada', { reason: 'logout' }, { key: sessionKey('id of cookies') }]])
})

await test('a logout everywhere that fails leaves the session of its page', async (t) => {
  const { ask, world, errors, lines, has } = await sessionRoutesOf(t)
  world['endAll'] = lose
  await ask('POST', '/auth/logout?everywhere=true')
  t.strictSame(errors, [AWAY])
  const line = { audit: 'logout_everywhere', outcome: 'incomplete', cause: AWAY, session: 'own-tag', ...BY }
  t.match(lines, [['warn', line, 'a logout everywhere has failed']])
  t.strictSame([has('settled'), has('cookie')], [[], []])
})

await test('a logout at the provider gets its address, where the provider has one', async (t) => {
  const { ask, world, has } = await sessionRoutesOf(t)
  t.strictSame(await ask('POST', '/auth/logout?provider=true'), {
    status: 200,
    body: { logout_url: 'https://provider.test/out' },
  })
  t.strictSame(has('endSessionUrl'), [['endSessionUrl', 'token']])
  world['endById'] = () => ({ loginKey: 'own-login' })
  await ask('POST', '/auth/logout?provider=true')
  t.strictSame(has('endSessionUrl'), [['endSessionUrl', undefined]])
  world['endSessionUrl'] = () => undefined
  t.equal((await ask('POST', '/auth/logout?provider=true')).status, 204)
  const plain = await sessionRoutesOf(t, { provider: {} as never })
  t.equal((await plain.ask('POST', '/auth/logout?provider=true')).status, 204)
})

await test('a logout ends what the logins of the browser have left, and its own session last', async (t) => {
  const { ask, world, calls, has } = await sessionRoutesOf(t)
  world['settled'] = () => [
    { key: 'login-1', cookieName: 'one', session: 'other-key', cookieValue: 'other.signed' },
    { cookieName: 'two' },
    { key: 'login-3', cookieName: 'three', session: 'foreign-key', cookieValue: 'no signature' },
    { key: 'login-4', cookieName: 'four', session: 'bare-key' },
    { key: 'login-5', cookieName: 'five', session: 'own-key', cookieValue: 'own.signed' },
    { session: sessionKey('own') },
    { session: 'noted-key' },
  ]
  world['endById'] = (id) => ({ loginKey: `login of ${String(id)}` })
  t.equal((await ask('POST', '/auth/logout')).status, 204)
  t.match(calls.slice(2, 8), [
    ['end', 'foreign-key', 'logout', { requester: BY }],
    ['end', 'bare-key', 'logout', { requester: BY }],
    ['end', 'noted-key', 'logout', { requester: BY }],
    ['endById', 'other', 'logout', true, BY],
    ['endById', 'own', 'logout', true, BY],
    ['forget', ['login-1', 'login-3', 'login-4', 'login-5', 'login of other', 'login of own']],
  ])
  t.strictSame(has('end').length, 3)
  t.strictSame(has('cookie'), [
    ...['one', 'two', 'three', 'four', 'five'].map((name) => ['cookie', name, '', { path: '/login' }]),
    ['cookie', 'session', '', { path: '/session' }],
  ])
})

await test('the sessions that a logout ends beside its own wait for replicas at once, and its own ends after them', async (t) => {
  const { ask, world, has } = await sessionRoutesOf(t)
  world['settled'] = () => [
    { key: 'login-1', cookieName: 'one', session: 'other-key', cookieValue: 'other.signed' },
    { key: 'login-2', cookieName: 'two', session: 'third-key', cookieValue: 'third.signed' },
    { session: 'noted-key' },
  ]
  const confirmed = Promise.withResolvers<void>()
  world['end'] = () => confirmed.promise
  world['endById'] = async (id) => {
    if (id === 'third') confirmed.resolve()
    await confirmed.promise
  }
  t.equal((await ask('POST', '/auth/logout')).status, 204)
  t.same(
    has('endById').map(([, id]) => id),
    ['other', 'third', 'own'],
  )
})

await test('a logout that loses the store on the way deletes no cookie, and forgets no login', async (t) => {
  for (const step of ['settled', 'end', 'endById']) {
    const { ask, world, errors, has } = await sessionRoutesOf(t)
    world['settled'] = () => [{ key: 'login', cookieName: 'one', session: 'key', cookieValue: 'no signature' }]
    world[step] = lose
    await ask('POST', '/auth/logout')
    t.strictSame([errors, has('cookie'), has('forget')], [[AWAY], [], []], step)
  }
})

await test('a session that is gone has no login to remove; a login that cannot be removed now stops no logout', async (t) => {
  const { ask, world, has, lines } = await sessionRoutesOf(t)
  world['endById'] = () => undefined
  t.equal((await ask('POST', '/auth/logout')).status, 204)
  t.strictSame(has('forget'), [['forget', []]])
  world['endById'] = () => ({ loginKey: 'own-login', oidc: { idToken: 'token' } })
  world['forget'] = lose
  t.equal((await ask('POST', '/auth/logout?provider=true')).status, 200)
  t.strictSame(has('endSessionUrl'), [['endSessionUrl', 'token']])
  t.match(lines[0], ['warn', { cause: AWAY }, 'a finished login was not removed'])
})

await test('a logout is answered once its logins are removed, however long that takes', async (t) => {
  const { ask, world } = await sessionRoutesOf(t)
  const removed: unknown[] = []
  world['forget'] = async (keys) => {
    for (const key of keys as string[]) {
      for (let turns = 0; turns < 10; turns++) await nextTurn()
      removed.push(key)
    }
    removed.push('all')
  }
  t.equal((await ask('POST', '/auth/logout')).status, 204)
  t.strictSame(removed, ['own-login', 'all'])
})

await test('a browser without a session has none to end, and no cookie of one to delete', async (t) => {
  const { ask, world, has, tags } = await sessionRoutesOf(t)
  world['named'] = () => []
  t.equal((await ask('POST', '/auth/logout')).status, 204)
  t.strictSame([has('endById'), has('cookie'), has('allows')], [[], [], []])
  t.notMatch(tags, [[/tag/]])
})

await test('a cookie without a valid signature names no session in the log, and counts against its address', async (t) => {
  const { ask, world, has, tags, errors } = await sessionRoutesOf(t)
  world['named'] = () => [{ id: 'forged', isAuthentic: false }]
  t.equal((await ask('POST', '/auth/logout')).status, 204)
  t.strictSame(has('allows'), [['allows', '127.0.0.1']])
  t.match(has('endById'), [['endById', 'forged', 'logout', false]])
  t.notMatch(tags, [[/tag/]])
  world['allows'] = () => false
  world['settled'] = () => [{ key: 'login', cookieName: 'one', session: 'key', cookieValue: 'other.signed' }]
  await ask('POST', '/auth/logout')
  t.match(errors, [{ code: 'rate_limited', details: { retryAfterSeconds: START_WINDOW_SECONDS } }])
  t.match(has('endById'), [['endById', 'other', 'logout', true]])
  t.strictSame(has('cookie'), [['cookie', 'one', '', { path: '/login' }]])
  world['named'] = () => [
    { id: 'forged', isAuthentic: false },
    { id: 'own', isAuthentic: true },
  ]
  await ask('POST', '/auth/logout')
  t.strictSame([has('allows'), errors], [[], []])
  t.match(tags, [[`tag of ${sessionKey('own')}`]])
})
