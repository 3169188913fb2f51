import { test } from 'tap'
import { StoreUnavailable } from '../../src/store/store.ts'
import { OWN, sessionRoutesOf } from '../support/login/session-routes-of.ts'

const AWAY = new StoreUnavailable('away')
const lose = (): unknown => Promise.reject(AWAY)

await test('GET /auth/session says what sessions and controls know of it, and how many others there are where asked', async (t) => {
  const { opened, ask, world, has, tags, errors } = await sessionRoutesOf(t)
  t.strictSame(opened.slice(0, 2), [
    ['preflight', '/auth/session', ['GET', 'POST']],
    ['preflight', '/auth/logout', ['POST']],
  ])
  t.ok(opened.some(([, path]) => path === '/auth/sessions'))
  const state = { session: 'own-tag', from: 'sessions', notice: 'for own-tag' }
  t.strictSame(await ask('GET', '/auth/session'), { status: 200, body: state })
  t.strictSame([has('read'), has('countOthers')], [[['read', 'cookies']], []])
  t.strictSame(tags, [['own-tag', 'ada-tag']])
  t.strictSame(await ask('GET', '/auth/session?others=true'), { status: 200, body: { ...state, other_sessions: 4 } })
  t.strictSame(has('countOthers'), [['countOthers', 'ada', 'own-key']])
  world['countOthers'] = lose
  t.strictSame(await ask('GET', '/auth/session?others=true'), { status: 200, body: state })
  world['read'] = () => ({ is: 'found', session: { ...OWN, record: {} } })
  t.strictSame(await ask('GET', '/auth/session?others=true'), { status: 200, body: state })
  world['read'] = () => ({ is: 'none' })
  const none = { status: 200, body: { from: 'sessions', notice: 'for undefined' } }
  t.strictSame(await ask('GET', '/auth/session?others=true'), none)
  t.strictSame(has('countOthers'), [])
  world['read'] = () => ({ is: 'storeDown', cause: AWAY })
  await ask('GET', '/auth/session')
  t.strictSame(errors, [AWAY])
})

await test('GET /auth/session needs neither controls nor subjects', async (t) => {
  const { ask } = await sessionRoutesOf(t, { controls: undefined, subjects: undefined })
  const body = { session: 'own-tag', from: 'sessions' }
  t.strictSame(await ask('GET', '/auth/session?others=true'), { status: 200, body })
})

await test('a query may ask for something with true, once', async (t) => {
  const { ask, errors, calls } = await sessionRoutesOf(t)
  for (const [name, method, path] of [
    ['others', 'GET', '/auth/session'],
    ['everywhere', 'POST', '/auth/logout'],
    ['provider', 'POST', '/auth/logout'],
  ] as const) {
    for (const query of [`${name}=`, `${name}=false`, `${name}=true&${name}=true`]) {
      await ask(method, `${path}?${query}`)
      const details = { errors: [{ field: name, message: 'must be true, once, or absent' }] }
      t.match(errors, [{ code: 'validation_failed', details }], query)
      t.notOk(calls.some(([what]) => what !== 'script'))
    }
  }
})

await test('POST /auth/session extends the session, or asks for a login', async (t) => {
  const { ask, calls, world, errors, tags } = await sessionRoutesOf(t)
  t.strictSame(await ask('POST', '/auth/session'), { status: 204, body: undefined })
  t.equal(calls[0]?.[0], 'script')
  t.strictSame(calls.slice(1), [['extend', 'cookies']])
  t.strictSame(tags, [['own-tag', 'ada-tag']])
  world['extend'] = () => ({ is: 'none' })
  await ask('POST', '/auth/session')
  t.match(errors, [{ code: 'login_required', details: { loginUrl: 'https://bff.test/auth/login' } }])
  world['script'] = () => {
    throw new TypeError('not a script')
  }
  for (const path of ['/auth/session', '/auth/logout']) {
    await ask('POST', path)
    t.match(errors, [/not a script/])
    t.equal(calls.length, 1)
  }
})
