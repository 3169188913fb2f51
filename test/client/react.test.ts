import type { Page } from 'playwright-core'
import { test, type Test } from 'tap'
import { reactApp } from '../support/client/react-app.ts'
import { TradingService } from '../support/client/trading-service.ts'
import { sendForm, testChromium } from '../support/browser/chromium.ts'
import { until } from '../support/time/until.ts'
import { startWorld, type World } from '../support/world.ts'

const texts = (text: string): string =>
  `document.querySelector('.price') && [...document.querySelectorAll('.price')].every((each) => each.textContent === '${text}')`

/** A server that serves a page with these React components, rendered in StrictMode. */
async function appWorld(t: Test, components: string): Promise<{ world: World<'scripted'>; service: TradingService }> {
  const world = await startWorld(t, { upstream: 'scripted', settings: { STATIC_DIR: await reactApp(t, components) } })
  return { world, service: new TradingService(world.upstream) }
}

await test('two mounted React components share one connection and one stream, even in StrictMode', async (t) => {
  const { world, service } = await appWorld(
    t,
    `function Price({ symbol }) {
       const { data, status } = useSubscription(client, { ticks: symbol })
       return h('p', { className: 'price' }, symbol, ' ', data ? data.tick.quote : 'none', ' ', status.state)
     }
     function App() {
       const [symbol, choose] = useState('R_100')
       const session = useSession(client)
       return h('main', null, h('h1', null, session.status), h(Price, { symbol }), h(Price, { symbol }),
         h('button', { onClick: () => choose('R_50') }, 'other'))
     }`,
  )
  const tab = await (await testChromium(t, { bypassCSP: true })).newPage()
  await tab.goto(world.server.url)
  await tab.waitForFunction(`document.querySelector('h1')?.textContent === 'anonymous' && ${texts('R_100 0 open')}`)
  service.tick(3)
  await tab.waitForFunction(texts('R_100 3 open'))
  t.same([service.connections, service.count('ticks'), service.streams], [1, 1, 1])
  await tab.click('button')
  await tab.waitForFunction(texts('R_50 0 open'))
  await until(() => service.streams === 1)
  t.same([service.connections, service.count('ticks'), service.count('forget')], [1, 2, 1])
})

await test('a component on a trading socket shows its stream again after a logout and a login in another tab', async (t) => {
  const { world, service } = await appWorld(
    t,
    `function App() {
       const { data, error, status } = useSubscription(client, { ticks: 'R_100' }, 'VRTC100')
       return h('p', { className: 'price' }, error ? error.code : data ? data.tick.quote : 'none', ' ', status.state)
     }`,
  )
  const context = await testChromium(t, { bypassCSP: true })
  const logIn = async (): Promise<Page> => {
    const page = await context.newPage()
    await page.goto(`${world.server.url}/auth/login`)
    // A user who is still logged in at the provider returns at once.
    if ((await page.locator('[data-action=continue]').count()) > 0) await sendForm(page)
    return page
  }
  const tab = await logIn()
  await tab.waitForFunction(texts('0 open'))
  await tab.evaluate('client.logout()')
  await tab.waitForFunction(texts('none waiting'))
  const other = await logIn()
  await tab.waitForFunction(texts('0 open'))
  await other.waitForFunction(texts('0 open'))
  t.same([service.connections, service.streams], [3, 2])
})
