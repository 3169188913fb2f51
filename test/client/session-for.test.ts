import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import { test, type Test } from 'tap'
import { ApiError } from '../../client/dist/client.js'
import { sessionFor, type RenderedSession } from '../../client/dist/server.js'
import { closeNow, listen } from '../../sandbox/listening.ts'
import { sendForm, testChromium } from '../support/browser/chromium.ts'
import { failure, pageClient } from '../support/client/page-client.ts'
import { IDENTIFIED } from '../support/login/identity.ts'
import { httpServer } from '../support/server/http-server.ts'
import { until } from '../support/time/until.ts'
import { RELAY, startWorld } from '../support/world.ts'
import { PROBLEM, problemBody } from '../support/client/own-problem.ts'

/** A request for a page, as frameworks with the Fetch API have it. */
const request = (headers: Record<string, string> = {}): Request => new Request('http://page.example/', { headers })

/** What a server of the test was asked. */
interface Asked {
  readonly url: string
  readonly requests: IncomingMessage[]
}

/** A server that a test scripts, in place of the real one, at another name than that of this machine if there is one. */
async function asked(t: Test, respond: RequestListener): Promise<Asked> {
  const requests: IncomingMessage[] = []
  const url = await httpServer(t, (request, response) => {
    requests.push(request)
    respond(request, response)
  })
  return { url, requests }
}

const anonymous: RequestListener = (_request, response) =>
  response.setHeader('content-type', 'application/json').end('{"authenticated":false,"now":1}')

await test('sessionFor() returns what the client of the page knows, for every kind of request, and null after the logout', async (t) => {
  const world = await startWorld(t, { ...IDENTIFIED, ...RELAY })
  const { browser, server, cookie } = world
  const client = pageClient(t, browser, server.url)
  await client.session.check()
  const state = client.session.get()
  if (state.status !== 'active') return t.fail('the user is logged in')
  const page = createServer((request, response) => {
    void sessionFor(request, { baseUrl: server.url }).then((session) => response.end(JSON.stringify(session)))
  })
  t.teardown(() => closeNow(page))
  const port = await listen(page, 0, '127.0.0.1')
  const sessions = [
    await sessionFor(request({ cookie }), { baseUrl: server.url }),
    await sessionFor({ headers: new Headers({ cookie: `theme=dark; ${cookie}; other=1` }) }, { baseUrl: server.url }),
    (await (await fetch(`http://127.0.0.1:${port}`, { headers: { cookie } })).json()) as RenderedSession,
  ]
  for (const session of sessions) {
    const { status, scope, subject, session: tag } = state
    t.match(session, { status, scope, subject, session: tag })
    for (const time of ['expiresAt', 'idleExpiresAt'] as const) {
      t.ok(Math.abs(Number(session?.[time]) - state[time]) < 5000, `${time}: ${session?.[time]}, ${state[time]}`)
    }
  }
  await client.logout()
  t.equal(await sessionFor(request({ cookie }), { baseUrl: server.url }), null)
})

await test('sessionFor() tells that orders are paused, and what the operator says, with times by the clock of the renderer', async (t) => {
  const told = { scope: 'trade', session: 'a-tag', notice: { message: 'Back at noon.' } }
  const pause = { message: 'Wait.', closing: true }
  // A server whose clock is an hour behind.
  const now = Math.floor(Date.now() / 1000) - 3600
  const body = { authenticated: true, now, expires_at: now + 600, idle_expires_at: now + 60, orders_paused: pause }
  const { url } = await asked(t, (_request, response) => response.end(JSON.stringify({ ...told, ...body })))
  const session = await sessionFor(request({ cookie: '__Host-session=one' }), { baseUrl: url })
  const { expiresAt = 0, idleExpiresAt = 0, ...rest } = { ...session }
  t.same(rest, { ...told, status: 'active', ordersPaused: pause })
  t.ok(Math.abs(expiresAt - Date.now() - 600_000) < 10_000)
  t.ok(Math.abs(idleExpiresAt - Date.now() - 60_000) < 10_000)
})

await test('sessionFor() is no use of the session: it ends by its idle limit, however often it is asked for', async (t) => {
  const { server, cookie } = await startWorld(t, { ...RELAY, settings: { SESSION_IDLE_SECONDS: '2' } })
  const idleEnds: number[] = []
  await until(async () => {
    const session = await sessionFor(request({ cookie }), { baseUrl: server.url })
    if (session) idleEnds.push(session.idleExpiresAt)
    return session === null
  })
  t.ok(Math.max(...idleEnds) - Math.min(...idleEnds) < 1500, 'but for what a time in whole seconds is off')
})

await test('sessionFor() sends the session cookie and nothing else of the request', async (t) => {
  const { url, requests } = await asked(t, anonymous)
  const headers = {
    host: 'evil.example',
    authorization: 'Bearer theirs',
    'x-forwarded-host': 'evil.example',
    'x-forwarded-for': '192.0.2.1',
    cookie: '__Host-login-abcdefgh=1; __Host-session=one.two; __Host-attribution=3; session=4; __Host-sessions=5',
  }
  t.equal(await sessionFor({ headers }, { baseUrl: url }), null)
  const [{ headers: sent, method, url: path } = { headers: {} }] = requests
  t.equal(`${method} ${path}`, 'GET /auth/session')
  t.equal(sent.cookie, '__Host-session=one.two')
  t.equal(sent.host, new URL(url).host)
  t.notMatch(JSON.stringify(requests[0]?.rawHeaders), /theirs|evil|192\.0|login|attribution/)
})

await test('sessionFor(): a header may be a list, as in headersDistinct of Node.js', async (t) => {
  const { url, requests } = await asked(t, anonymous)
  const lists = [['__Host-session=one'], ['a=1', '__Host-session=one'], ['a=1; __Host-session=one', 'b=2']]
  for (const cookie of lists) t.equal(await sessionFor({ headers: { cookie } }, { baseUrl: url }), null)
  t.same(
    requests.map(({ headers }) => headers.cookie),
    lists.map(() => '__Host-session=one'),
  )
  t.equal(
    await sessionFor({ headers: { cookie: ['__Host-session=one', '__Host-session=two'] } }, { baseUrl: url }),
    null,
  )
  t.equal(await sessionFor({ headers: { 'sec-fetch-site': ['cross-site'] } }, { baseUrl: url }), undefined)
  t.equal(requests.length, lists.length)
})

await test('sessionFor(): what the server would not take for a session is null, and never sent', async (t) => {
  const { url, requests } = await asked(t, anonymous)
  const long = 'a=1; '.repeat(1640)
  const never: Record<string, string | undefined> = {
    'no header': undefined,
    'an empty header': '',
    'other cookies': 'a=1; __Host-sessions=2; x__Host-session=3; __host-session=4; __Host-session',
    'two of its name': '__Host-session=one; __Host-session=two',
    'two, of which one is empty': '__Host-session=; __Host-session=two',
    'a no-break space of a sibling host': 'a=1; \u00a0__Host-session=theirs',
    'a form feed': '\f__Host-session=theirs',
    'a line break': '__Host-session=one\r\nx-evil: 1',
    'a character that no header has': '__Host-session=on€',
    'a space inside': '__Host-session=o ne',
    'spaces without end': `__Host-session=o${' '.repeat(100_000)}ne`,
  }
  for (const [what, cookie] of Object.entries(never)) {
    t.equal(await sessionFor({ headers: { cookie } }, { baseUrl: url }), null, what)
    t.equal(await sessionFor({ headers: { get: () => cookie ?? null } }, { baseUrl: url }), null, `${what}, by get()`)
  }
  t.equal(requests.length, 0)
  const sent: Record<string, string> = {
    '__Host-session="quoted"': '__Host-session="quoted"',
    ' \t__Host-session=blanks \t': '__Host-session=blanks',
    [`${long}__Host-session=long`]: '__Host-session=long',
    '__Host-session=a=b': '__Host-session=a=b',
    '__Host-session=a;session=b': '__Host-session=a',
  }
  for (const [cookie, expected] of Object.entries(sent)) {
    await sessionFor({ headers: { cookie } }, { baseUrl: url })
    t.equal(requests.at(-1)?.headers.cookie, expected)
  }
  t.equal(requests.length, Object.keys(sent).length)
})

await test('sessionFor() knows the name of the cookie with DEV_INSECURE_COOKIES, and sends it to this machine alone', async (t) => {
  const { server, cookie } = await startWorld(t, { ...RELAY, settings: { DEV_INSECURE_COOKIES: 'true' } })
  t.match(cookie, /(^|; )session=/)
  t.match(await sessionFor(request({ cookie }), { baseUrl: server.url }), { status: 'active' })
  t.equal(await sessionFor(request({ cookie }), { baseUrl: 'http://bff.invalid' }), null, 'not even asked')
})

await test('sessionFor() rejects with an ApiError where it is not known whether somebody is logged in', async (t) => {
  const headers = { cookie: '__Host-session=one' }
  const problem = problemBody('session_store_unavailable', { status: 503 })
  const answers: Record<string, [RequestListener, object]> = {
    'the store is away': [
      (_request, response) => response.writeHead(503, PROBLEM).end(problem),
      { status: 503, code: 'session_store_unavailable' },
    ],
    'a proxy fails': [(_request, response) => response.writeHead(502).end('<h1>Bad gateway</h1>'), { status: 502 }],
    'a redirect, which is not followed': [
      (_request, response) => response.writeHead(302, { location: '/auth/session?elsewhere' }).end(),
      { status: 302 },
    ],
    'a page of a proxy': [(_request, response) => response.end('<h1>Log in</h1>'), { status: 200 }],
    'no session': [(_request, response) => response.end('null'), { status: 200 }],
    'half a session': [
      (_request, response) => response.end('{"authenticated":true,"now":1,"expires_at":2}'),
      { status: 200 },
    ],
    'the connection breaks': [(request) => request.socket.destroy(), { status: 0, code: undefined }],
    'no answer within 2 seconds': [() => undefined, { status: 0, cause: { name: 'TimeoutError' } }],
    'half an answer within 2 seconds': [
      (_request, response) => response.write('{"authenticated":'),
      { status: 200, cause: { name: 'TimeoutError' } },
    ],
  }
  for (const [what, [respond, expected]] of Object.entries(answers)) {
    const { url, requests } = await asked(t, respond)
    const error = await failure(sessionFor({ headers }, { baseUrl: url }))
    t.ok(error instanceof ApiError, `${what}: ${String(error)}`)
    t.match(error, { ...expected, outcome: undefined }, what)
    t.equal(requests.length, 1, what)
  }
  const closed = 'http://127.0.0.1:9'
  t.match(await failure(sessionFor({ headers }, { baseUrl: closed })), { name: 'ApiError', status: 0 })
})

await test('sessionFor() without an address as baseUrl rejects at once, whoever asks', async (t) => {
  for (const baseUrl of ['', undefined, '/relative', 'localhost:3000']) {
    t.match(await failure(sessionFor(request(), { baseUrl: baseUrl as string })), { name: 'TypeError' })
  }
})

await test('In Chromium, the page after a login comes without the cookie: sessionFor() returns undefined, and then the session', async (t) => {
  let bff = ''
  const frontend = await httpServer(
    t,
    (request, response) => {
      void sessionFor(request, { baseUrl: bff }).then((session) => {
        const page = `<p>${session === undefined ? 'unknown' : (session?.status ?? 'anonymous')}</p><a href="/account">Again</a>`
        response.writeHead(200, { 'content-type': 'text/html', 'cache-control': 'private, no-store' }).end(page)
      })
    },
    0,
    'localhost',
  )
  const world = await startWorld(t, { settings: { FRONTEND_URL: frontend, FRONTEND_ORIGINS: frontend } })
  bff = world.server.url
  const page = await (await testChromium(t)).newPage()
  const shown = (): Promise<string | null> => page.locator('p').textContent()
  await page.goto(`${frontend}/account`)
  t.equal(await shown(), 'anonymous', 'an address that the user has typed')
  await page.goto(`${bff}/auth/login?return_to=/account`)
  await sendForm(page)
  await page.waitForURL(`${frontend}/account`)
  t.equal(await shown(), 'unknown')
  await page.reload()
  t.equal(await shown(), 'unknown', 'a reload does not help')
  await page.getByText('Again').click()
  await page.getByText('active').waitFor()
})
