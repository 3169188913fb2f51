import { once } from 'node:events'
import { test, type Test } from 'tap'
import { WebSocket } from 'ws'
import { JarBrowser } from '../support/browser/jar-browser.ts'
import { epoch, oidcWorld, type OidcWorld } from '../support/login/oidc-world.ts'
import { isLoggedIn, startLogin, tokens } from '../support/login/token-endpoint.ts'
import { testServer, type TestServer } from '../support/server/world.ts'

/** Another instance on the same Redis. */
function another(t: Test, { settings, redis }: OidcWorld, other: Record<string, string> = {}): Promise<TestServer> {
  return testServer(t, { ...settings, REDIS_URL: redis?.url ?? '', ...other })
}

/** Opens the session socket of a browser. */
async function watch(
  browser: JarBrowser,
  world: OidcWorld,
  { port }: TestServer,
): Promise<{ closed: Promise<unknown[]> }> {
  const page = new URL(world.server.url)
  const socket = new WebSocket(`ws://localhost:${port}/ws/session`, {
    origin: page.origin,
    headers: { cookie: browser.cookieHeader(page, page) },
  })
  const messages: string[] = []
  socket.on('message', (data: Buffer) => messages.push(data.toString()))
  const closed = once(socket, 'close').then(([code]: unknown[]) => [code, JSON.parse(messages.at(-1) ?? 'null')])
  await once(socket, 'message')
  return { closed }
}

await test('A logout at one instance closes the sockets of the session at another', async (t) => {
  const world = await oidcWorld(t, { redis: true })
  const other = await another(t, world)
  for (const [sid, named] of [
    ['s1', { sid: 's1' }],
    ['s2', { sub: 'ada' }],
  ] as const) {
    const { browser } = await world.logIn('ada', { sid, iat: epoch(-5) })
    const { closed } = await watch(browser, world, other)
    t.equal((await world.postLogout(await world.logoutToken({ ...named, iat: epoch(-5) }))).status, 200)
    t.match(await closed, [4401, { event: 'ended', reason: 'revoked' }])
  }
})

await test('POST /auth/backchannel-logout: 503 while the store does not answer, and the same token ends the session later', async (t) => {
  const world = await oidcWorld(t, { redis: true })
  const other = await another(t, world)
  const { browser } = await world.logIn('ada', { sid: 's1' })
  const token = await world.logoutToken({ sid: 's1' })
  world.redis?.process.kill('SIGSTOP')
  const stopped = await world.postLogout(token)
  t.match([stopped.status, stopped.headers.get('retry-after')], [503, /^\d+$/])
  t.match(await stopped.json(), { code: 'session_store_unavailable' })
  world.redis?.process.kill('SIGCONT')
  const again = await world.postLogout(token, other)
  t.equal(again.status, 200)
  t.notOk(await isLoggedIn(browser, other.url))
})

await test('Sessions from before OIDC end when it is switched on, and those from before BACKCHANNEL_LOGOUT obey it', async (t) => {
  const world = await oidcWorld(t, { redis: true, settings: { BACKCHANNEL_LOGOUT: '' } })
  const { browser } = await world.logIn('ada', { sid: 's1' })
  const on = await another(t, world, { BACKCHANNEL_LOGOUT: 'true' })
  t.ok(await isLoggedIn(browser, on.url))
  t.equal((await world.postLogout(await world.logoutToken({ sid: 's1' }), on)).status, 200)
  t.notOk(await isLoggedIn(browser, world.server.url))

  const before = await another(t, world, { OIDC: '', BACKCHANNEL_LOGOUT: '' })
  world.endpoint.behaviour = tokens()
  const early = new JarBrowser()
  await (await startLogin({ browser: early, server: before })).finish()
  t.ok(await isLoggedIn(early, before.url))
  t.notOk(await isLoggedIn(early, on.url), 'nobody knows whose it is')
  t.ok(await isLoggedIn(early, before.url), 'instances without the setting still know it')
})

await test('The time from the post of the provider to the last closed socket at another instance, for docs/performance.md', async (t) => {
  const [rounds, sockets] = [Number(process.env['ROUNDS'] ?? 3), 10]
  const world = await oidcWorld(t, { redis: true, settings: { PUBLIC_HANDSHAKES_PER_MINUTE: '0' } })
  const other = await another(t, world)
  const took: number[] = []
  for (let round = 0; round < rounds; round++) {
    const { browser } = await world.logIn('ada', { sid: `s${round}` })
    const watches = await Promise.all(Array.from({ length: sockets }, () => watch(browser, world, other)))
    const token = await world.logoutToken({ sid: `s${round}` })
    const startedAt = performance.now()
    const [response] = await Promise.all([world.postLogout(token), ...watches.map(({ closed }) => closed)])
    took.push(performance.now() - startedAt)
    t.equal(response.status, 200)
  }
  const sorted = took.toSorted((one, another) => one - another)
  const at = (part: number): string => (sorted[Math.ceil(part * rounds) - 1] ?? NaN).toFixed(1)
  t.comment(`${rounds} logouts, ${sockets} sockets each: p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, longest ${at(1)} ms`)
})
