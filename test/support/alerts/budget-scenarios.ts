import type { Test } from 'tap'
import { JarBrowser } from '../browser/jar-browser.ts'
import { around, type Scenario } from './scrapes.ts'
import { logIn } from '../parts.ts'
import { startWorld, API } from '../world.ts'
import { ACCOUNTS } from '../user.ts'

/** Users send more orders than the budget allows. */
export async function usedBudgetScenario(t: Test): Promise<Scenario> {
  const { call, server } = await startWorld(t, { ...API, settings: { UPSTREAM_BUDGET: '10/600' } })
  return around(server, 'the budget is used up', ['BffBudgetRefusesOrders', 'BffBudgetNearlyUsed'], async () => {
    for (let count = 0; count < 12; count++) await call('POST', ACCOUNTS, { body: '{}' })
  })
}

/** Upstream refuses calls that the budget allows: of users at so many addresses. */
async function refusedUsers(t: Test, count: number, name: string, raises: readonly string[]): Promise<Scenario> {
  const settings = { UPSTREAM_BUDGET: '1000/60', TRUST_PROXY: '1' }
  const { upstream, send, server } = await startWorld(t, { ...API, settings })
  const url = new URL(server.url)
  const cookies: string[] = []
  for (let each = 0; each < count; each++) {
    const browser = new JarBrowser()
    await logIn(browser, server.url, `user${each}@example.test`)
    cookies.push(browser.cookieHeader(url, url))
  }
  upstream.answer = (_request, socket) => void socket.write('HTTP/1.1 429 No\r\nContent-Length: 0\r\n\r\n')
  return around(server, name, raises, async () => {
    for (const [each, cookie] of cookies.entries()) {
      await send('GET', ACCOUNTS, { headers: { cookie, 'x-csrf': '1', 'x-forwarded-for': `192.0.2.${each}` } })
    }
  })
}

/** The last of four is the probe, which shows that upstream refuses everybody. */
export function heldBackScenario(t: Test): Promise<Scenario> {
  return refusedUsers(t, 4, 'upstream refuses reads', ['BffBudgetHeldBack', 'BffReadsRefused'])
}

/** Two users are not everybody: that is no matter of the operator. */
export function limitedUsersScenario(t: Test): Promise<Scenario> {
  return refusedUsers(t, 2, 'upstream refuses reads of two users', [])
}
