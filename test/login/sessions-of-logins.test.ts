import { test } from 'tap'
import { browserLogins, previousSessions, sessionsOf, settledOf, surplusOf } from '../../src/login/browser-logins.ts'
import type { LoginState } from '../../src/login/login-record.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { alone } from '../support/login/logins-alone.ts'

const login = (name: string, state: Partial<LoginState> | { is: 'lost' | 'unreadable' | 'unasked' }) =>
  ({ key: `key of ${name}`, cookie: { name }, loginState: state }) as Parameters<typeof settledOf>[0][number]

await test('a login replaces the session of its request and that of the last login of the browser, two at most', (t) => {
  const earlier = [
    login('a', { is: 'pending', previous: ['waiting'] }),
    login('b', { is: 'finished', session: 'older' }),
    login('c', { is: 'finished', session: 'newer' }),
    login('d', { is: 'failed' }),
  ]
  t.same(previousSessions('current', earlier, []), ['current', 'newer'])
  t.same(previousSessions(undefined, earlier, []), ['newer', 'older'])
  t.same(previousSessions('newer', earlier, []), ['newer', 'older'])
  t.same(previousSessions(undefined, earlier.slice(0, 2), []), ['older', 'waiting'])
  t.same(previousSessions(undefined, [], []), [])
  t.same(previousSessions(undefined, [login('a', { is: 'failed', previous: ['left'] })], []), ['left'])
  t.same(
    previousSessions('current', earlier, ['b', 'a']),
    ['current', 'newer', 'older', 'waiting'],
    'those whose cookies go',
  )
  const many = Array.from({ length: 40 }, (_, at) => login(`${at}`, { is: 'finished', session: `of ${at}` }))
  t.equal(
    previousSessions(
      'current',
      many,
      many.map(({ cookie }) => cookie.name),
    ).length,
    30,
  )
  t.end()
})

await test('the sessions of a browser are those that its logins have made, and those that they have noted', (t) => {
  const logins = [
    login('a', { is: 'finished', session: 'made', cookieValue: 'of made' }),
    login('b', { is: 'pending', previous: ['made', 'waiting'] }),
    login('c', { is: 'running', previous: ['going'] }),
    login('d', { is: 'failed', previous: ['left'] }),
    login('e', { is: 'failed' }),
    login('f', { is: 'lost' }),
  ]
  const found = [...sessionsOf(logins)]
  t.same(found, [
    ['made', 'of made'],
    ['waiting', undefined],
    ['going', undefined],
    ['left', undefined],
  ])
  t.end()
})

await test('only a login that has ended is settled, and only a finished one has a session', (t) => {
  const all = [
    login('a', { is: 'pending' }),
    login('b', { is: 'running' }),
    login('c', { is: 'unreadable' }),
    login('d', { is: 'unasked' }),
    login('e', { is: 'lost' }),
    login('f', { is: 'failed' }),
    login('g', { is: 'finished', session: 's', cookieValue: 'v' }),
  ]
  t.same(settledOf(all), [
    { cookieName: 'e' },
    { cookieName: 'f' },
    { key: 'key of g', cookieName: 'g', session: 's', cookieValue: 'v' },
  ])
  const noted = login('h', { is: 'pending', previous: ['s', 'left'] })
  t.same(settledOf([...all, noted]).slice(3), [{ session: 'left' }], 'and what only another login has noted')
  t.end()
})

await test('a cookie that goes is named once, and more go where tabs have started logins at the same moment', (t) => {
  const ended = login('ended', { is: 'failed' })
  const open = Array.from({ length: 10 }, (_, at) => login(`${at}`, { is: 'pending' }))
  t.same(surplusOf([ended, ...open]), ['ended', '0'])
  t.same(surplusOf([...open, ended]), ['ended', '0'])
  t.end()
})

await test('where a master of a Cluster is gone, only the logins that it has count as not looked up, unless all are needed', async (t) => {
  const { store, cookies, envelope, logins, start, header } = alone()
  const tickets = [await start(), await start(), await start()]
  await logins.forget([tickets[2]?.key ?? ''])
  const readMany = store.readMany.bind(store)
  store.readMany = async (keys) => {
    if (keys.includes(tickets[0]?.key ?? '')) throw new StoreUnavailable('no reply')
    return readMany(keys)
  }
  const found = await browserLogins(cookies.read(header()), store, envelope)
  t.same(
    new Map(found.map(({ key, loginState }) => [key, loginState.is])),
    new Map(tickets.map(({ key }, at) => [key, (['unasked', 'pending', 'lost'] as const)[at]])),
  )
  await t.rejects(browserLogins(cookies.read(header()), store, envelope, true), StoreUnavailable)
})
