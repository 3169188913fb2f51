import type { ServerResponse } from 'node:http'
import { test, type Test } from 'tap'
import { sessionKey } from '../../src/store/keys.ts'
import { gated } from '../support/login/gated-provider.ts'
import { startWorld } from '../support/world.ts'
import { httpServer } from '../support/server/http-server.ts'
import { logIn } from '../support/parts.ts'
import { until } from '../support/time/until.ts'
import { ACCOUNTS } from '../support/user.ts'
const USERS = 10
/** Requests of each user on each of two instances. */
const CALLS = 10
const CALLS_IN_ALL = USERS * 2 * CALLS

const ask = (path: string, cookie: string, { url }: { url: string }): Promise<Response> =>
  fetch(url + path, { headers: { cookie, 'x-csrf': '1' } })

/** Two instances, an upstream that responds when it is released, and users who are logged in. */
async function slowWorld(t: Test) {
  const waiting: ServerResponse[] = []
  const settings = {
    API_URL: await httpServer(t, (_request, response) => void waiting.push(response)),
    LOG_LEVEL: 'warn',
    AUTH_STARTS_PER_MINUTE: '0',
  }
  const world = await startWorld(t, { provider: gated(), redis: true, settings, instances: 2 })
  const { publicUrl, servers } = world
  const client = await world.storeClient()
  const users = await Promise.all(Array.from({ length: USERS }, () => world.user()))
  const browsers = users.map(({ browser }) => browser)
  const cookies = users.map(({ cookie }) => cookie)
  const keys = cookies.map((cookie) => sessionKey(/__Host-session=([^.;]+)/.exec(cookie)?.[1] ?? ''))

  return {
    publicUrl,
    browsers,
    client,
    keys,
    waiting,
    start: () =>
      cookies.flatMap((cookie) =>
        servers.flatMap((server) =>
          Array.from({ length: CALLS }, async () => (await ask(ACCOUNTS, cookie, server)).status),
        ),
      ),
    release: () => {
      for (const response of waiting.splice(0)) response.end('{}')
    },
    alive: async () => {
      const states = cookies.flatMap((cookie) =>
        servers.map(async (server) => {
          const state = (await (await ask('/auth/session', cookie, server)).json()) as {
            authenticated: boolean
          }
          return state.authenticated || (await ask(ACCOUNTS, cookie, server)).status !== 401
        }),
      )
      const alive = (await Promise.all(states)).filter(Boolean).length
      return alive + (await client.exists(keys))
    },
  }
}

await test('requests that are in flight during a logout do not bring the session back', async (t) => {
  const world = await slowWorld(t)
  const answers = world.start()
  await until(() => world.waiting.length === CALLS_IN_ALL)
  for (const browser of world.browsers) {
    const logout = await browser.fetch('/auth/logout', { method: 'POST', headers: { 'x-csrf': '1' } })
    t.equal(logout.status, 204)
  }
  world.release()
  t.same(new Set(await Promise.all(answers)), new Set([200]), 'requests in flight finish')
  t.equal(await world.alive(), 0)
})

await test('requests that are in flight during a second login leave the new session alone', async (t) => {
  const world = await slowWorld(t)
  const answers = world.start()
  await until(() => world.waiting.length === CALLS_IN_ALL)
  await Promise.all(world.browsers.map((browser) => logIn(browser, world.publicUrl)))
  world.release()
  await Promise.all(answers)
  t.equal(await world.alive(), 0, 'no session is left')
  for (const browser of world.browsers) {
    const state = (await (await browser.fetch('/auth/session')).json()) as { authenticated: boolean }
    t.ok(state.authenticated)
  }
})
