import type { BrowserContext, Page } from 'puppeteer-core'
import { test, type Test } from 'tap'
import type { SessionState } from '../../client/dist/client.js'
import { freePort } from '../../sandbox/listening.ts'
import { browsersOr, logInBy, testWindow, type BrowserName } from '../support/browser/browsers.ts'
import { samplesOf } from '../support/telemetry/metrics.ts'
import { until } from '../support/time/until.ts'
import { httpServer } from '../support/server/http-server.ts'
import { testServer, type TestServer } from '../support/server/test-server.ts'
import { WITHIN_A_SECOND, within } from '../support/time/within.ts'
import { startWorld } from '../support/world.ts'

/** A session state, and when the page learned it, in milliseconds of the clock that all processes of the machine share. */
type Seen = SessionState & { readonly at: number }

/** Follows the session and writes down every state. */
const FOLLOW = `
  globalThis.loadedAt = Date.now()
  globalThis.seen = []
  client.session.subscribe(() => seen.push({ ...client.session.get(), at: Date.now() }))`

/** The pages of the server. Its Content-Security-Policy allows no inline script. */
const FILES = {
  'index.html': '<!doctype html><title>page</title><script type="module" src="/app.js"></script>',
  'app.js': `import { createClient } from '/client.js'
    globalThis.client = createClient()${FOLLOW}`,
}

/** Serves a page of another origin, which imports the browser package from a server and talks to that server. */
async function pageElsewhere(t: Test, port: number, serverUrl: string): Promise<void> {
  const page = `<!doctype html><title>elsewhere</title><script type="module">
    import { createClient } from '${serverUrl}/client.js'
    globalThis.client = createClient({ baseUrl: '${serverUrl}' })${FOLLOW}
  </script>`
  await httpServer(t, (_request, response) => response.writeHead(200, { 'content-type': 'text/html' }).end(page), port)
}

/** The last state that a page has seen; undefined before it has loaded. */
function lastSeen(page: Page): Promise<Seen | undefined> {
  return page.evaluate('globalThis.seen?.at(-1)') as Promise<Seen | undefined>
}

async function allAre(pages: readonly Page[], status: SessionState['status']): Promise<void> {
  for (const page of pages) await until(async () => (await lastSeen(page))?.status === status, status)
}

const openPages = (window: BrowserContext, urls: readonly string[]): Promise<Page[]> =>
  Promise.all(
    urls.map(async (url) => {
      const page = await window.newPage()
      await page.goto(url)
      return page
    }),
  )

/** Three tabs of the first of two instances, and a page of another origin that talks to the second. All are anonymous. */
async function fourPages(
  t: Test,
  name: BrowserName,
): Promise<{ instances: readonly [TestServer, TestServer]; tabs: readonly Page[]; elsewhere: Page }> {
  const [port, elsewherePort] = [await freePort(), await freePort()]
  const elsewhereUrl = `http://localhost:${elsewherePort}`
  const settings = {
    STATIC_DIR: t.testdir(FILES),
    FRONTEND_ORIGINS: `http://localhost:${port},${elsewhereUrl}`,
    AUTH_STARTS_PER_MINUTE: '1000',
    PUBLIC_HANDSHAKES_PER_MINUTE: '10000',
  }
  const world = await startWorld(t, { upstream: 'scripted', redis: true, port, settings })
  const { url } = world.server
  const other = await testServer(t, { ...world.settings, PUBLIC_URL: url })
  await pageElsewhere(t, elsewherePort, other.url)
  const pages = await openPages(await testWindow(t, name), [elsewhereUrl, url, url, url])
  await allAre(pages, 'anonymous')
  const [elsewhere, ...tabs] = pages as [Page, ...Page[]]
  return { instances: [world.server, other], tabs, elsewhere }
}

/** How long after `startedAt` each page has learned its last state. */
async function delaysMs(pages: readonly Page[], startedAt: number): Promise<number[]> {
  return Promise.all(pages.map(async (page) => ((await lastSeen(page))?.at ?? NaN) - startedAt))
}

const loadTimes = (pages: readonly Page[]): Promise<unknown[]> =>
  Promise.all(pages.map((page) => page.evaluate('loadedAt')))

for (const name of browsersOr('chrome')) {
  // ROUNDS=50 repeats the run by which this was judged.
  const rounds = Number(process.env['ROUNDS'] ?? (name === 'chrome' ? 10 : 5))
  await test(`${name}: ${rounds} logins and logouts over two instances are known in every tab without a reload${WITHIN_A_SECOND}`, async (t) => {
    const { instances, tabs, elsewhere } = await fourPages(t, name)
    const logins: number[] = []
    const logouts: number[] = []
    for (let round = 0; round < rounds; round++) {
      const own = tabs[round % tabs.length] as Page
      const others = tabs.filter((tab) => tab !== own)
      const loadedAt = await loadTimes(others)
      // A login that starts on the second instance finishes on the first.
      await logInBy(own, `${instances[round % 2]?.url}/auth/login`)
      await allAre(tabs, 'active')
      logins.push(...(await delaysMs(others, Number(await own.evaluate('seen[0].at')))))
      t.same(await loadTimes(others), loadedAt)

      // Tabs of another origin get no message. They ask the server when the user looks at them.
      await elsewhere.evaluate('client.session.check()')
      for (const { opsUrl } of instances) {
        const sockets = async () => (await samplesOf(opsUrl, 'bff_relays')).get('kind="session"')
        await until(async () => (await sockets()) === 1, 'one session socket for each instance')
      }
      const leaving = round % 2 === 0 ? own : elsewhere
      const clickedAt = Number(
        await leaving.evaluate(`(async () => { const at = Date.now(); await client.logout(); return at })()`),
      )
      await allAre([...tabs, elsewhere], 'anonymous')
      for (const page of [...tabs, elsewhere]) t.equal(await page.evaluate('seen.at(-1).reason'), 'logout')
      logouts.push(...(await delaysMs([...tabs, elsewhere], clickedAt)))
    }
    within(t, Math.max(...logins), 1000, 'until every tab knows of a login')
    within(t, Math.max(...logouts), 1000, 'until every tab knows of a logout')
  })
}
