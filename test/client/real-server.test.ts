import { test, type Test } from 'tap'
import type { ActiveSession, Client, SessionState } from '../../client/dist/client.js'
import { awakeClock } from '../support/time/awake-clock.ts'
import { JarBrowser } from '../support/browser/jar-browser.ts'
import { samplesOf } from '../support/telemetry/metrics.ts'
import { pageClient } from '../support/client/page-client.ts'
import { until } from '../support/time/until.ts'
import { logIn } from '../support/parts.ts'
import { testServer } from '../support/server/test-server.ts'
import { WITHIN_A_SECOND, within } from '../support/time/within.ts'
import { startWorld, type World, RELAY } from '../support/world.ts'
import { sideBySide } from '../support/time/side-by-side.ts'

/** A tab of a browser, and every session state that its client has reported. */
interface Tab {
  readonly client: Client
  readonly states: SessionState[]
}

function openTab(t: Test, browser: JarBrowser, pageUrl: string, baseUrl?: string): Tab {
  const client = pageClient(t, browser, pageUrl, baseUrl)
  const states: SessionState[] = []
  client.session.subscribe(() => states.push(client.session.get()))
  return { client, states }
}

/** Two instances on one Redis, and a browser with two tabs that talk to the first and two that talk to the second. */
async function fourTabs(
  t: Test,
  settings: Record<string, string> = {},
): Promise<{ world: World<'scripted'>; tabs: readonly Tab[] }> {
  const world = await startWorld(t, { ...RELAY, redis: true, settings })
  const { url } = world.server
  const other = await testServer(t, { ...world.settings, PUBLIC_URL: url })
  const tabs = [url, url, other.url, other.url].map((baseUrl) => openTab(t, world.browser, url, baseUrl))
  await allAre(tabs, 'active')
  // Tabs of one address share a session socket.
  for (const { opsUrl } of [world.server, other]) {
    await until(async () => (await samplesOf(opsUrl, 'bff_relays')).get('kind="session"') === 1)
  }
  return { world, tabs }
}

function allAre(tabs: readonly Tab[], status: SessionState['status']): Promise<void> {
  return until(() => tabs.every(({ client }) => client.session.get().status === status), `all ${status}`)
}

const active = ({ client }: Tab): ActiveSession => client.session.get() as ActiveSession

for (const [how, end] of [
  ['client.logout() in one tab', (_world: World<'scripted'>, [tab]: readonly Tab[]) => tab?.client.logout()],
  ['a logout that no client made', (world: World<'scripted'>) => world.logOut()],
] as const) {
  await test(`${how}: the tabs of both instances know the reason logout${WITHIN_A_SECOND}`, async (t) => {
    const { world, tabs } = await fourTabs(t)
    const started = performance.now()
    await end(world, tabs)
    await allAre(tabs, 'anonymous')
    within(t, performance.now() - started, 1000, 'until every tab knows')
    for (const { client } of tabs) t.same(client.session.get(), { status: 'anonymous', reason: 'logout' })
  })
}

await test(`client.logout({ everywhere: true }): the tabs of another browser know${WITHIN_A_SECOND}`, async (t) => {
  const identity = { IDENTITY_PATH: '/account/v1/me', IDENTITY_POINTER: '/data/user_id' }
  const { server, browser: first } = await startWorld(t, { settings: identity })
  const second = new JarBrowser()
  const tabs: Tab[] = []
  for (const browser of [first, second]) {
    await logIn(browser, server.url)
    tabs.push(openTab(t, browser, server.url))
  }
  await allAre(tabs, 'active')
  for (const tab of tabs) t.equal(active(tab).subject, 'user-demo')
  const started = performance.now()
  await tabs[0]?.client.logout({ everywhere: true })
  await allAre(tabs, 'anonymous')
  within(t, performance.now() - started, 1000, 'until every tab knows')
  for (const { client } of tabs) t.same(client.session.get(), { status: 'anonymous', reason: 'logout' })
})

await sideBySide({
  'a login in a new tab makes the other tabs of its address active again': async (t) => {
    const { world, tabs } = await fourTabs(t)
    const [first, second] = tabs as readonly [Tab, Tab, ...Tab[]]
    for (let round = 0; round < 5; round++) {
      await first.client.logout()
      await allAre(tabs, 'anonymous')
      await world.logIn()
      const landed = openTab(t, world.browser, world.server.url)
      await allAre([landed, first, second], 'active')
      landed.client.close()
      // The tabs of another address learn of it when the user looks at them.
      for (const { client } of tabs) await client.session.check()
      await allAre(tabs, 'active')
    }
  },

  'a login that replaces the session leaves every tab active': async (t) => {
    const { world, tabs } = await fourTabs(t)
    const before = tabs.map((tab) => active(tab).expiresAt)
    await new Promise((resolve) => void setTimeout(resolve, 2500))
    await world.logIn()
    await until(() => tabs.every((tab, index) => active(tab).expiresAt > (before[index] ?? 0) + 1000))
    for (const { states } of tabs) t.notOk(states.some(({ status }) => status !== 'active'))
  },

  'extend() moves idleExpiresAt in the tabs of both instances': async (t) => {
    const { tabs } = await fourTabs(t, { SESSION_IDLE_SECONDS: '10' })
    const [first] = tabs as readonly [Tab]
    const before = active(first).idleExpiresAt
    await until(async () => {
      await first.client.session.extend()
      return tabs.every((tab) => active(tab).idleExpiresAt > before + 1000)
    })
    for (const tab of tabs) t.ok(active(tab).idleExpiresAt <= Date.now() + 12_000)
  },

  'an unused session: every tab is warned, then learns the reason idle': async (t) => {
    const clock = awakeClock(t)
    const stoodStillMs = (): number => performance.now() - clock()
    for (;;) {
      const { tabs } = await fourTabs(t, { SESSION_IDLE_SECONDS: '12' })
      await until(() => tabs.every((tab) => active(tab).expiring === 'idle'))
      const before = stoodStillMs()
      await allAre(tabs, 'anonymous')
      // A client that is told nothing for a second after the end asks, and then does not know the reason.
      const states = tabs.map(({ client }) => client.session.get())
      const isUnsure = states.some((state) => state.status !== 'anonymous' || state.reason !== 'idle')
      if (isUnsure && stoodStillMs() - before > 500) continue
      for (const state of states) t.same(state, { status: 'anonymous', reason: 'idle' })
      return
    }
  },

  'an instance restarts: its tabs stay active, and learn of a logout again': async (t) => {
    const { world, tabs } = await fourTabs(t)
    await world.server.close()
    const again = await world.instance({ PORT: String(world.server.port) })
    await until(async () => (await samplesOf(again.opsUrl, 'bff_relays')).get('kind="session"') === 1)
    for (const { states } of tabs) t.notOk(states.some(({ status }) => status === 'anonymous'))
    await tabs[3]?.client.logout()
    await allAre(tabs, 'anonymous')
  },
})
