import { test } from 'tap'
import type { ActiveSession } from '../../client/dist/client.js'
import { KINDS } from '../support/client/driven-client.ts'
import { failure, reaches } from '../support/client/page-client.ts'
import { until } from '../support/time/until.ts'

for (const [kind, start] of KINDS) {
  await test(`${kind}: the session is unknown, then anonymous, active after a login, and anonymous after a logout elsewhere`, async (t) => {
    const { client, server } = await start(t)
    const { session } = client
    const seen: string[] = []
    t.same(session.get(), { status: 'unknown' })
    session.subscribe(() => seen.push(session.get().status))
    t.same(seen, [], 'no listener is called at once')
    await until(() => session.get().status === 'anonymous')
    t.same(session.get(), { status: 'anonymous', reason: undefined })
    await server.logIn()
    const state = session.get() as ActiveSession
    t.equal(state.status, 'active')
    t.equal(session.get(), state, 'it is the same object until something changes')
    t.ok(state.expiresAt > Date.now() && state.idleExpiresAt > Date.now())
    t.match(state, { scope: 'trade', subject: undefined, expiring: undefined })
    await server.endSession()
    await until(() => session.get().status === 'anonymous')
    t.same(session.get(), { status: 'anonymous', reason: 'logout' })
    t.same(seen, ['anonymous', 'active', 'anonymous'])
  })

  await test(`${kind}: a pause of orders is in the state of the session until it is lifted`, async (t) => {
    const { client, server } = await start(t)
    const { session } = client
    const seen: unknown[] = []
    session.subscribe((isOther) => seen.push((session.get() as ActiveSession).ordersPaused, isOther))
    await server.logIn()
    seen.splice(0)
    const pause = { message: 'Wait.', closing: true }
    await server.pauseOrders(pause)
    t.match(session.get(), { status: 'active' })
    await server.pauseOrders()
    await session.check()
    t.same(seen, [pause, false, undefined, false])
  })

  await test(`${kind}: logout() ends the session at once; calls are then refused with login_required`, async (t) => {
    const { client, server } = await start(t)
    await server.logIn()
    await client.logout()
    t.same(client.session.get(), { status: 'anonymous', reason: 'logout' })
    const refused = { name: 'ApiError', status: 401, code: 'login_required', outcome: undefined }
    t.match(await failure(client.api('/trading/v1/options/accounts')), refused)
    t.match(await failure(client.session.extend()), refused)
    t.equal(server.calls.length, 0)
  })

  await test(`${kind}: logout({ everywhere: true }) without a subject is subject_unknown, and the user is logged out here`, async (t) => {
    const { client, server } = await start(t)
    await server.logIn()
    const error = await failure(client.logout({ everywhere: true }))
    t.match(error, { status: 409, problem: { code: 'subject_unknown' } })
    t.equal(client.session.get().status, 'anonymous')
    await client.session.check()
    t.equal(client.session.get().status, 'anonymous')
  })

  await test(`${kind}: extend() resolves while a user is logged in`, async (t) => {
    const { client, server } = await start(t)
    await server.logIn()
    await client.session.extend()
    t.equal(client.session.get().status, 'active')
  })

  await test(`${kind}: a second login replaces the session, of which the page sees no end`, async (t) => {
    const { client, server } = await start(t)
    const seen: string[] = []
    client.session.subscribe(() => seen.push(client.session.get().status))
    await server.logIn()
    const trading = client.tradingSocket('VRTC100')
    await until(() => trading.status().state === 'open')
    const waits = reaches(trading, 'waiting')
    await server.logIn()
    await waits
    await until(() => trading.status().state === 'open')
    t.same(new Set(seen.slice(seen.indexOf('active'))), new Set(['active']))
  })

  await test(`${kind}: while the network is down, the session is unavailable with the one before, and comes back`, async (t) => {
    const { client, server } = await start(t)
    client.session.subscribe(() => undefined)
    await server.logIn()
    const before = client.session.get()
    server.setNetwork('down')
    await client.session.check()
    t.same(client.session.get(), { status: 'unavailable', last: before })
    server.setNetwork('up')
    await client.session.check()
    t.same(client.session.get(), before)
  })

  await test(`${kind}: the addresses of a login, a sign-up, and the close of the client`, async (t) => {
    const { client } = await start(t)
    t.match(client.session.loginUrl('login', { returnTo: '/a?b=c' }), /^http:.*\/auth\/login\?return_to=%2Fa%3Fb%3Dc$/)
    t.match(client.session.loginUrl('signup', { returnTo: '/' }), /\/auth\/signup\?return_to=%2F$/)
    client.close()
    client.close()
  })
}
