import { test, type Test } from 'tap'
import type { JarBrowser } from '../support/browser/jar-browser.ts'
import { isLoggedIn, scripted, type StartedLogin, type TokenEndpoint } from '../support/login/token-endpoint.ts'
import { startWorld, type World } from '../support/world.ts'

const LOGIN = '__Host-login-'

/**
 * Finishes logins one after the other, and logs out. After each login its session is the only one of the browser, after the logout
 * there is none.
 * @param sessions the browser as it was with earlier sessions
 */
async function finishAll(
  t: Test,
  { browser, server, logOut }: World<'none', TokenEndpoint>,
  logins: readonly StartedLogin[],
  sessions: JarBrowser[] = [],
): Promise<void> {
  const live = async (): Promise<number> => {
    const states = await Promise.all(sessions.map((session) => isLoggedIn(session, server.url)))
    return states.filter(Boolean).length
  }
  for (const { finish } of logins) {
    await finish()
    sessions.push(browser.clone())
    t.equal(await live(), 1)
  }
  t.equal((await logOut()).status, 204)
  t.equal(await live(), 0)
}

await test('of fifteen tabs that have begun to log in at once, each ends the session of the one before', async (t) => {
  const world = await startWorld(t, { provider: scripted })
  const logins = await Promise.all(Array.from({ length: 15 }, () => world.startLogin()))
  t.equal(world.browser.named(LOGIN).length, 15)
  await finishAll(t, world, logins.slice(0, 4))
})

for (const fate of ['pending', 'cancelled']) {
  await test(`a session whose login cookie has made room for an eleventh login, which is ${fate}, ends with the next login`, async (t) => {
    const world = await startWorld(t, { provider: scripted })
    const [first, second] = await Promise.all(Array.from({ length: 10 }, () => world.startLogin()))
    if (first === undefined || second === undefined) return t.fail()
    await first.finish()
    const session = world.browser.clone()
    const eleventh = await world.startLogin()
    t.notOk(world.browser.named(LOGIN).some(({ name }) => name === LOGIN + first.state.slice(0, 8)))
    if (fate === 'cancelled') await eleventh.finish({ error: 'access_denied' })
    t.ok(await isLoggedIn(session, world.server.url))
    await finishAll(t, world, [second], [session])
  })
}

for (const end of ['a logout', 'another login']) {
  await test(`sessions of logins that finished at once end with ${end}, also after their login cookies have made room for others`, async (t) => {
    const world = await startWorld(t, { provider: scripted })
    const { browser, server } = world
    const logins = await Promise.all(Array.from({ length: 10 }, () => world.startLogin()))
    const finished = await Promise.all(
      logins.slice(0, 4).map(async ({ state, authorize }) => {
        const tab = browser.clone()
        await tab.navigate(`${server.url}/auth/callback?code=x&state=${state}`, { from: authorize })
        return tab
      }),
    )
    const before = new Map(browser.cookies)
    for (const { cookies } of finished) {
      for (const [key, cookie] of cookies) if (cookie !== before.get(key)) browser.cookies.set(key, cookie)
    }
    for (let count = 0; count < 4; count++) await world.startLogin()
    t.equal(browser.named(LOGIN).length, 10)
    await finishAll(t, world, end === 'a logout' ? [] : logins.slice(4, 5), finished)
  })
}
