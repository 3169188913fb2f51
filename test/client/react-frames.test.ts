import { readFile } from 'node:fs/promises'
import type { Page } from 'playwright-core'
import { test, type Test } from 'tap'
import { sendForm, testChromium } from '../support/browser/chromium.ts'
import { reactApp } from '../support/client/react-app.ts'
import { startWorld } from '../support/world.ts'

/** What was on the page when React had committed a render or the browser was about to paint, and whose session it was then. */
interface Frame {
  readonly at: 'commit' | 'paint'
  readonly session: string | undefined
  readonly text: string
}

/**
 * A page that keeps the account of its first user, as a careless one would, and shows all that the hooks bring. Its network ignores
 * aborts, and holds back the answers of the API while `hold` is set.
 */
const NETWORK = `{
  fetch: async (url, init) => {
    const response = await fetch(url, { ...init, signal: undefined })
    if (url.includes('/api/')) await globalThis.hold
    return response
  },
}`
const RECORDER = `
  const frames = (globalThis.frames = [])
  const record = (at) => {
    const frame = { at, session: sessionKey(client.session.get()), text: document.body.textContent }
    const last = frames.findLast((before) => before.at === at)
    if (at === 'commit' || last?.session !== frame.session || last?.text !== frame.text) frames.push(frame)
  }
  const paint = () => (record('paint'), requestAnimationFrame(paint))
  requestAnimationFrame(paint)
  function Balance({ account }) {
    const { data } = useSubscription(client, { balance: 1 }, account)
    const { socket, status } = useSocket(client, account)
    globalThis.socket = socket
    return h('p', null, 'balance of ', data?.balance?.loginid ?? 'nobody', ' socket ', status.state)
  }
  function User({ useAccounts }) {
    const session = useSession(client)
    const { data, error, isLoading, reload } = useAccounts('/trading/v1/options/accounts')
    globalThis.reload = reload
    const [account, keep] = useState()
    const first = data?.data[0].account_id
    if (account === undefined && first !== undefined) keep(first)
    return h('main', null, h('h1', null, session.status), h('p', null, 'account ', first ?? 'none', isLoading && ' loading',
      error && ' failed'), account && h(Balance, { account }))
  }
  const Recorded = ({ useAccounts }) =>
    h(Profiler, { id: 'all', onRender: () => record('commit') }, h(User, { useAccounts }))`
const WITH_HOOKS = `${RECORDER}
  const useAccounts = (path) => useApi(client, path)
  const App = () => h(Recorded, { useAccounts })`
const QUERIES = new URL('../../docs/examples/tanstack-query/src/query.ts', import.meta.url)
/** The same with a recipe in place of useApi. */
const WITH_QUERIES = `
  import { QueryClientProvider } from '@tanstack/react-query'
  import { forgetOtherSessions, queryClient, useApiQuery } from './query.ts'
  ${RECORDER}
  globalThis.cached = () => queryClient.getQueryCache().getAll().map(({ queryKey }) => queryKey[1])
  const useAccounts = (path) => {
    const { data, error, isFetching, refetch } = useApiQuery(path)
    return { data, error, isLoading: isFetching, reload: () => void refetch() }
  }
  const App = () => h(QueryClientProvider, { client: queryClient }, h(Recorded, { useAccounts }))
  forgetOtherSessions()`

const shows = (tab: Page, text: string): Promise<unknown> =>
  tab.waitForFunction(`document.body.textContent.includes(${JSON.stringify(text)})`)

/**
 * A journey through three sessions, in which the answers of the API to one user arrive in the session of the next.
 * @returns the tab
 */
async function journey(t: Test, STATIC_DIR: string): Promise<Page> {
  const { server } = await startWorld(t, {
    settings: {
      STATIC_DIR,
      IDENTITY_PATH: '/account/v1/me',
      IDENTITY_POINTER: '/data/user_id',
    },
  })
  const context = await testChromium(t, { bypassCSP: true })
  /** Signs another user up in another tab, as one who sits down at the same computer. */
  const signUp = async (email: string): Promise<void> => {
    await context.clearCookies({ name: /^(?!__Host-)/ })
    const other = await context.newPage()
    await other.goto(`${server.url}/auth/signup`)
    await sendForm(other, email)
    await other.waitForURL(`${server.url}/`)
    // Only the tab in front is painted.
    await tab.bringToFront()
  }
  const tab = await context.newPage()
  await tab.goto(server.url)
  await shows(tab, 'anonymousaccount none')
  const hold = (): Promise<unknown> =>
    tab.evaluate('void (globalThis.hold = new Promise((done) => (globalThis.release = done)))')
  const release = (): Promise<unknown> => tab.evaluate('release()')
  const account = async (more = ''): Promise<string> => {
    await tab.waitForFunction(`/account [A-Z]+\\d+${more}/.test(document.body.textContent)`)
    return /account ([A-Z]+\d+)/.exec(String(await tab.textContent('main')))?.[1] ?? ''
  }

  await signUp('first@example.test')
  const first = await account('balance of [A-Z]+\\d+ socket open')
  await hold()
  await tab.evaluate('reload()')
  await shows(tab, `account ${first} loading`)
  await tab.evaluate('client.logout()')
  await shows(tab, 'anonymousaccount nonebalance of nobody socket waiting')
  t.equal(await tab.evaluate('socket'), undefined)
  await signUp('second@example.test')
  await shows(tab, 'activeaccount none loading')
  await release()
  const second = await account()
  t.not(second, first)

  // A new login takes the place of the session, without a logout.
  await hold()
  await tab.evaluate('reload()')
  await signUp('third@example.test')
  await shows(tab, 'activeaccount none loading')
  await release()
  const third = await account()
  t.equal(new Set([first, second, third]).size, 3)

  const frames = await tab.evaluate<Frame[]>('frames')
  const sessions = [...new Set(frames.map(({ session }) => session))]
  t.equal(sessions.length, 4, `nobody and three users: ${sessions.join()}`)
  const seenBy = (id: string): (string | undefined)[] => [
    ...new Set(frames.filter(({ text }) => text.includes(id)).map(({ session }) => session)),
  ]
  const users = sessions.filter((session) => session !== undefined)
  t.same(
    [first, second, third].map(seenBy),
    users.map((session) => [session]),
  )
  t.ok(frames.some(({ at }) => at === 'paint') && frames.some(({ at }) => at === 'commit'))
  t.comment(`${frames.length} frames`)
  t.same(await tab.evaluate('faults'), [])
  return tab
}

await test('no frame shows the data of a user after the session says another, however late an answer arrives', async (t) => {
  await journey(t, await reactApp(t, WITH_HOOKS, { options: NETWORK }))
})

await test('docs/examples/tanstack-query: the same with queries, whose cache keeps one session', async (t) => {
  const files = { 'query.ts': await readFile(QUERIES, 'utf8') }
  const tab = await journey(t, await reactApp(t, WITH_QUERIES, { options: NETWORK, files }))
  t.same(await tab.evaluate('cached()'), [await tab.evaluate('frames.at(-1).session')])
  await tab.evaluate('client.logout()')
  await shows(tab, 'anonymousaccount none')
  t.same(await tab.evaluate('cached().filter((session) => session !== undefined)'), [])
})
