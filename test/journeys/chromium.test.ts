import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { test, type Test } from 'tap'
import { WebSocketServer } from 'ws'
import { testBalancer } from '../support/deployment/balancer.ts'
import { PageRecord, testChromium } from '../support/browser/chromium.ts'
import { huntTokens } from '../support/telemetry/token-hunt.ts'
import { freePort } from '../../sandbox/listening.ts'
import { testServer, testWorld, type World } from '../support/server/world.ts'

const STATIC_DIR = fileURLToPath(new URL('../../sandbox/page', import.meta.url))

/** Two instances on one Redis behind a balancer that alternates between them. */
async function twoInstances(t: Test): Promise<World & { url: string; chosen: readonly number[] }> {
  const port = await freePort()
  const settings = { PUBLIC_URL: `http://localhost:${port}`, STATIC_DIR }
  const world = await testWorld(t, { settings, redis: true })
  const second = await testServer(t, world.settings)
  const { url, chosen } = await testBalancer(t, port, [world.server.port, second.port])
  return { ...world, url, chosen }
}

await test('A user signs up, watches the price, trades and logs out, and no token reaches the page', async (t) => {
  const { url, chosen, provider, upstream } = await twoInstances(t)
  const browser = await testChromium(t)
  const context = await browser.newContext()
  const record = new PageRecord(context)
  const page = await context.newPage()
  const byTestId = (id: string) => page.getByTestId(id)

  await page.goto(url)
  await byTestId('partner-signup').click()
  await page.fill('input[name=email]', 'trader@example.test')
  await page.fill('input[name=password]', 'any')
  await page.click('[data-action=continue]')

  await byTestId('account-row').first().waitFor()
  t.equal(new URL(page.url()).origin, url)
  t.match(provider.authorizations.at(-1), { prompt: 'registration', utm_medium: 'affiliate' })

  const price = await byTestId('price').textContent()
  await byTestId('price')
    .filter({ hasNotText: price ?? '' })
    .waitFor()

  await byTestId('trade-buy').click()
  await byTestId('trade-status')
    .filter({ hasText: /won|lost/ })
    .waitFor()
  t.match(upstream.sockets(), { public: 1, demo: 1 })

  const cookies = await context.cookies(url)
  t.ok(
    cookies.every(({ httpOnly, secure }) => httpOnly && secure),
    'every cookie is HttpOnly and Secure',
  )
  const sessionCookie = cookies.find(({ name }) => name === '__Host-session')
  t.match(sessionCookie, { sameSite: 'Strict', path: '/', domain: 'localhost' })

  const before = await record.places(page)
  await byTestId('logout').click()
  await page.locator('[data-testid=session-state][data-state=anonymous]').waitFor()
  t.same(await context.cookies(url), [], 'no cookie is left')

  const places = [...before, ...(await record.places(page))]
  const secrets = [...provider.issued, ...upstream.issued]
  t.ok(secrets.length >= 4, `${secrets.length} codes, tokens and one-time passwords were issued`)
  t.same(record.unread, [], 'every body was read')
  t.same(huntTokens(places, secrets), [], `no secret in ${places.length} places`)
  t.ok(places.filter(({ where }) => where.startsWith('frame of')).length > 10, 'WebSocket frames were searched')
  t.comment(`searched ${places.length} places for ${secrets.length} secrets`)
  t.ok(
    chosen.every((count) => count > 3),
    `both instances served requests (${chosen.join(' and ')})`,
  )
})

await test('huntTokens finds a token planted in a body, a WebSocket frame and a URL', async (t) => {
  const secret = 'planted-token-planted-token'
  const leaky = createServer((request, response) => {
    if (request.url === '/') {
      response.setHeader('content-type', 'text/html')
      const script = `new WebSocket('ws://' + location.host); fetch('/clean?t=' + atob('${Buffer.from(secret).toString('base64')}'))`
      response.end(
        `<p>no secret here</p><script src="/leak.js"></script><script>${script.replace(/atob\('[^']*'\)/, 'T')}</script>`,
      )
    } else if (request.url === '/leak.js') response.end(`var T = '${secret}'`)
    else response.end('clean')
  })
  const sockets = new WebSocketServer({ server: leaky })
  sockets.on('connection', (socket) => socket.send(JSON.stringify({ token: secret })))
  await new Promise<void>((resolve) => void leaky.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    for (const client of sockets.clients) client.terminate()
    leaky.closeAllConnections()
    leaky.close()
  })
  const browser = await testChromium(t)
  const context = await browser.newContext()
  const record = new PageRecord(context)
  const page = await context.newPage()
  const framed = page.waitForEvent('websocket').then((socket) => socket.waitForEvent('framereceived'))
  const fetched = page.waitForResponse(/clean/)
  await page.goto(`http://127.0.0.1:${(leaky.address() as AddressInfo).port}/`)
  await Promise.all([framed, fetched])
  const finds = huntTokens(await record.places(page), [secret])
  const kinds = new Set(finds.map(({ where }) => where.split(' ', 1)[0]))
  t.ok(kinds.has('body') && kinds.has('frame') && kinds.has('url'), [...kinds].join(', '))
})
