import { test } from 'tap'
import { sendForm, testChromium } from '../support/browser/chromium.ts'
import { reactApp } from '../support/client/react-app.ts'
import { answerJson } from '../support/upstream/scripted-upstream.ts'
import { startWorld } from '../support/world.ts'

/** What the user sees whenever React has changed the page, of an account that React need not render again to show it. */
const APP = `
  const { Activity, memo, startTransition } = React
  const Account = memo(() => {
    const { status } = useSession(client)
    const { data } = useApi(client, '/wallet/v1/wallets')
    return h('p', null, status, ' ', data?.data ?? 'none')
  })
  const account = h(Account)
  function App() {
    const [mode, change] = useState('visible')
    globalThis.change = (next) => startTransition(() => change(next))
    return h(Activity, { mode }, account)
  }
  globalThis.seen = []
  const note = () => seen.push(document.body.innerText.trim())
  new MutationObserver(note).observe(document, { subtree: true, childList: true, characterData: true, attributes: true })`

const skip = process.env['REACT'] === undefined && 'the React of the test runner has no Activity'

await test('an Activity that is shown again after a logout does not show the data of the user', { skip }, async (t) => {
  const world = await startWorld(t, { upstream: 'scripted', settings: { STATIC_DIR: await reactApp(t, APP) } })
  world.upstream.onRest = (_request, response) => answerJson(response, 200, { data: 'mine' })
  const page = await (await testChromium(t, { bypassCSP: true })).newPage()
  await page.goto(`${world.server.url}/auth/login`)
  await sendForm(page)
  await page.waitForURL(`${world.server.url}/`)
  const shows = (text: string): Promise<unknown> => page.waitForFunction(`seen.at(-1) === '${text}'`)
  await shows('active mine')
  await page.evaluate(`change('hidden')`)
  await shows('')
  await page.evaluate('client.logout()')
  await page.evaluate(`seen.length = 0, change('visible')`)
  await shows('anonymous none')
  t.notOk(await page.evaluate(`seen.includes('active mine')`), String(await page.evaluate('seen.join()')))
  t.same(await page.evaluate('faults'), [])
})
