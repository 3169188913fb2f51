import { setTimeout as delay } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { ApiError, createClient, type Client } from '../../client/dist/client.js'
import { endSession, listSessions, logOutAtProvider } from '../../client/dist/client/sessions.js'
import { createFakeClient, problem } from '../../client/dist/testing.js'
import { failure, pageOptions } from '../support/client/page-client.ts'
import { IDENTIFIED } from '../support/login/identity.ts'
import { tagOf } from '../support/login/own-sessions.ts'
import { startLogin } from '../support/login/token-endpoint.ts'
import { startWorld } from '../support/world.ts'
import { exactly } from '../support/exactly.ts'

/** A client, and the logins of its user. */
interface Driven {
  readonly client: Client
  /** Logs the user in here. */
  readonly logIn: (subject?: string) => Promise<void>
  /** Logs the same user in in another browser. @returns the tag of that session */
  readonly logInElsewhere: () => Promise<string>
}

const FIREFOX = 'Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:128.0) Gecko/20100101 Firefox/128.0'

async function real(t: Test): Promise<Driven> {
  const { browser, server, upstream, visitor } = await startWorld(t, IDENTIFIED)
  const { onIdentity: answer } = upstream
  const client = createClient({ baseUrl: server.url, ...pageOptions(browser, server.url, server.url) })
  t.teardown(() => client.close())
  return {
    client,
    async logIn(subject) {
      // A login that begins within 5 ms of a logout of all sessions counts as one that began before it.
      await delay(10)
      upstream.onIdentity = subject === undefined ? (_request, response) => response.writeHead(500).end() : answer
      await (await startLogin({ browser, server })).finish({ code: subject ?? 'CR1' })
      await client.session.check()
    },
    async logInElsewhere() {
      const there = visitor()
      there.browser.userAgent = FIREFOX
      await there.logIn('CR1')
      return tagOf(there.browser, server)
    },
  }
}

function fake(t: Test): Driven {
  const client = createFakeClient()
  t.teardown(() => client.close())
  return {
    client,
    logIn: (subject) => client.server.logIn(subject === undefined ? {} : { subject }),
    logInElsewhere: async () => client.server.logInElsewhere('Firefox on Windows'),
  }
}

for (const [kind, start] of [
  ['the real client', real],
  ['the fake client', fake],
] as const) {
  await test(`${kind}: listSessions() says where the user is logged in, and endSession() ends another session`, async (t) => {
    const { client, logIn, logInElsewhere } = await start(t)
    await logIn('CR1')
    const [first, second] = [await logInElsewhere(), await logInElsewhere()]
    const state = client.session.get()
    const own = state.status === 'active' ? state.session : ''
    const listed = await listSessions(client)
    t.equal(listed.length, 3)
    for (const tag of [first, second]) {
      const found = listed.find((each) => each.tag === tag)
      t.match(found, { isCurrent: false, device: 'Firefox on Windows' })
    }
    t.match(
      listed.find(({ tag }) => tag === own),
      { isCurrent: true, device: undefined },
    )
    for (const { startedAt, lastUsedAt = startedAt } of listed) {
      t.ok(Math.abs(Date.now() - startedAt) < 60_000 && Math.abs(Date.now() - lastUsedAt) < 120_000)
    }
    await endSession(client, first)
    await endSession(client, first)
    t.same(new Set((await listSessions(client)).map(({ tag }) => tag)), new Set([own, second]))
    const refused = await failure(endSession(client, own))
    t.ok(refused instanceof ApiError, 'the class of the core')
    t.match(refused, { status: 409, code: 'current_session' })
    t.equal(client.session.get().status, 'active')
    await client.logout({ everywhere: true })
    await logIn('CR1')
    t.match(await listSessions(client), exactly({ isCurrent: true }))
  })

  await test(`${kind}: logOutAtProvider() ends the session also where the provider has no address for it`, async (t) => {
    const { client, logIn, logInElsewhere } = await start(t)
    await logIn('CR1')
    await logInElsewhere()
    t.equal(await logOutAtProvider(client, { everywhere: true }), undefined)
    t.match(client.session.get(), { status: 'anonymous', reason: 'logout' })
    await logIn('CR1')
    t.match(await listSessions(client), exactly({ isCurrent: true }))
    await client.logout()
    await logIn()
    t.match(await failure(logOutAtProvider(client, { everywhere: true })), { code: 'subject_unknown' })
    t.match(client.session.get(), { status: 'anonymous' })
  })

  await test(`${kind}: listSessions() and endSession() without a subject reject with subject_unknown, without a session with 401`, async (t) => {
    const { client, logIn } = await start(t)
    const both = [() => listSessions(client), () => endSession(client, 'a-tag')]
    for (const each of both) {
      t.match(await failure(each()), { name: 'ApiError', status: 401, code: 'login_required', outcome: undefined })
    }
    t.equal(client.session.get().status, 'anonymous')
    await logIn()
    for (const each of both) {
      t.match(await failure(each()), { status: 409, code: 'subject_unknown' })
    }
    t.equal(client.session.get().status, 'active')
  })

  await test(`${kind}: listSessions() and endSession() can be aborted`, async (t) => {
    const { client, logIn } = await start(t)
    await logIn('CR1')
    const reason = new Error('the page is left')
    const signal = AbortSignal.abort(reason)
    for (const each of [
      listSessions,
      (...more: Parameters<typeof listSessions>) => endSession(more[0], 'a-tag', more[1]),
    ]) {
      t.equal(await failure(each(client, { signal })), reason)
    }
  })
}

await test('listSessions(): times are comparable with Date.now() on a machine whose clock is wrong, ahead or behind', async (t) => {
  const client = createFakeClient({ session: { subject: 'CR1' } })
  t.teardown(() => client.close())
  for (const aheadSeconds of [3600, -3600]) {
    const now = Math.floor(Date.now() / 1000) - aheadSeconds
    const session = { tag: 'a', started_at: now - 10, last_used_at: now - 5, current: true }
    client.server.respond('GET', '/auth/sessions', { now, sessions: [session] })
    const [{ startedAt, lastUsedAt = 0 } = { startedAt: 0 }] = await listSessions(client)
    t.ok(Math.abs(Date.now() - 10_000 - startedAt) < 2000, String(aheadSeconds))
    t.equal(lastUsedAt - startedAt, 5000)
  }
})

await test('endSession() rejects when the session may go on', async (t) => {
  const client = createFakeClient({ session: { subject: 'CR1' } })
  t.teardown(() => client.close())
  const tag = client.server.logInElsewhere()
  client.server.respond('DELETE', `/auth/sessions/${tag}`, Response.error())
  t.match(await failure(endSession(client, tag)), { name: 'ApiError', status: 0, outcome: 'unknown' })
  client.server.respond('DELETE', `/auth/sessions/${tag}`, new Response('not found', { status: 404 }))
  t.match(await failure(endSession(client, tag)), { status: 404, code: undefined }, 'a 404 of something else')
})

await test('a list that is refused while another tab logs in logs nobody out here: the new cookie may be about to arrive', async (t) => {
  const client = createFakeClient({ session: { subject: 'CR1' } })
  t.teardown(() => client.close())
  const seen: string[] = []
  client.session.subscribe(() => seen.push(client.session.get().status))
  await client.session.check()
  const now = Math.floor(Date.now() / 1000)
  const times = { now, expires_at: now + 3600, idle_expires_at: now + 3600 }
  let asked = 0
  client.server.respond('GET', '/auth/sessions', problem(401, 'login_required'))
  client.server.respond('GET', '/auth/session', () => {
    if (++asked < 3) return { authenticated: false, now }
    if (asked === 3) void client.server.logIn({ subject: 'CR1' })
    return { authenticated: true, scope: 'trade', session: 'session-2', subject: 'CR1', ...times }
  })
  t.match(await failure(listSessions(client)), { status: 401 })
  t.match(client.session.get(), { status: 'active', session: 'session-2' })
  t.same(new Set(seen), new Set(['active']))
})

await test('every function of ./sessions works with the core of an older server, as of a page that was open before an upgrade', async (t) => {
  const client = createFakeClient({ session: { subject: 'CR1' } })
  t.teardown(() => client.close())
  await client.session.check()
  const members = 'ask check close confirm end extend get loginUrl logout subscribe takeAuthError'
  t.equal(Object.keys(client.session).toSorted().join(' '), members, 'those that version 0.3 had, and every one since')
  t.match(await listSessions(client), [{ isCurrent: true }])
  await endSession(client, client.server.logInElsewhere())
  t.equal(await logOutAtProvider(client), undefined)
  t.match(client.session.get(), { status: 'anonymous', reason: 'logout' })
})
