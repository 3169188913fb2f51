import { setTimeout } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { gated, type GatedProvider } from '../support/login/gated-provider.ts'
import { startParts } from '../support/world.ts'
import { JarBrowser } from '../support/browser/jar-browser.ts'
import { ready, serverProcess, type ServerProcess } from '../support/server/server-process.ts'
import { logIn } from '../support/parts.ts'
import { until } from '../support/time/until.ts'
import { ACCOUNTS } from '../support/user.ts'
/** A token lifetime that is over at once. */
const OVER = 0.001

/** Three processes of the server that share a Redis, and a user whose token has just expired. */
async function threeProcesses(t: Test): Promise<{
  gate: GatedProvider
  processes: ServerProcess[]
  /** Calls the API on one of them. */
  call: (process: ServerProcess | undefined) => Promise<Response>
}> {
  const parts = await startParts(t, { provider: gated(), upstream: 'sandbox', redis: true })
  const { provider: gate, port, publicUrl, settings } = parts
  const processes = await Promise.all([
    serverProcess(t, { ...settings, PORT: String(port) }),
    serverProcess(t, settings),
    serverProcess(t, settings),
  ])
  t.same(await Promise.all(processes.map((each) => ready(each))), [true, true, true])
  const browser = new JarBrowser()
  gate.expiresIn = OVER
  await logIn(browser, publicUrl)
  gate.expiresIn = 3600
  return {
    gate,
    processes,
    async call(process) {
      const tab = browser.clone()
      tab.page = new URL(`http://localhost:${process?.port}`)
      return tab.fetch(ACCOUNTS, { headers: { 'x-csrf': '1' } })
    },
  }
}

await test('fifty calls on three processes cause one refresh of an expired token', async (t) => {
  const { gate, processes, call } = await threeProcesses(t)
  const answers = await Promise.all(Array.from({ length: 50 }, (_, index) => call(processes[index % 3])))
  for (const { status } of answers) t.equal(status, 200)
  t.equal(gate.refreshes.length, 1)
})

await test('when the process that holds the refresh lock is killed, another one refreshes the token once', async (t) => {
  const { gate, processes, call } = await threeProcesses(t)
  const [holder, ...others] = processes
  const asked = Promise.withResolvers<void>()
  const killed = Promise.withResolvers<boolean>()
  gate.before = async () => {
    asked.resolve()
    // The provider does not see this request: its sender is killed.
    return killed.promise
  }
  const lost = call(holder).then(
    () => 'answered',
    () => 'lost',
  )
  await asked.promise
  gate.before = async () => true
  const calls = Array.from({ length: 50 }, (_, index) => call(others[index % 2]))
  holder?.child.kill('SIGKILL')
  await holder?.exited
  killed.resolve(false)
  t.equal(await lost, 'lost')
  // No call waits until the lock of the killed process expires.
  const responses = await Promise.all(calls)
  t.same([...new Set(responses.map(({ status }) => status))], [503])
  const isRefreshed = async (): Promise<boolean> => (await call(others[0])).status === 200
  await until(isRefreshed, 'the lock of the killed process expires', 30_000)
  t.equal((await call(others[1])).status, 200)
  t.equal(gate.refreshes.length, 2, 'the request of the killed process, and one more')
})

await test('under load, tokens are renewed once each, and every call is sent once', async (t) => {
  const TOKEN_SECONDS = 40
  const USERS = 12
  const FOR_MS = 2.5 * TOKEN_SECONDS * 1000
  const PROVIDER_MS = 700
  const provider = gated({ accessTokenSeconds: TOKEN_SECONDS })
  const unlimited = { AUTH_STARTS_PER_MINUTE: '0' }
  const parts = await startParts(t, { provider, upstream: 'sandbox', redis: true, settings: unlimited })
  const { provider: gate, port, publicUrl, upstream, settings } = parts
  const processes = [await serverProcess(t, { ...settings, PORT: String(port) }), await serverProcess(t, settings)]
  t.same(await Promise.all(processes.map((each) => ready(each))), [true, true])
  const browsers = Array.from({ length: USERS }, () => new JarBrowser())
  for (const browser of browsers) await logIn(browser, publicUrl)
  gate.before = () => setTimeout(PROVIDER_MS, true)
  const endAt = Date.now() + FOR_MS
  const statuses = new Map<string, number>()
  let slowest = 0
  /** One call after the other. */
  const use = async (browser: JarBrowser, method: string, ports: readonly number[], pauseMs: number): Promise<void> => {
    for (let count = 0; Date.now() < endAt; count++) {
      const tab = browser.clone()
      tab.page = new URL(`http://localhost:${ports[count % ports.length]}`)
      const startedAt = performance.now()
      const { status } = await tab.fetch(ACCOUNTS, { method, headers: { 'x-csrf': '1' } })
      if (method === 'GET') slowest = Math.max(slowest, performance.now() - startedAt)
      const result = `${method} ${status}`
      statuses.set(result, (statuses.get(result) ?? 0) + 1)
      await setTimeout(pauseMs)
    }
  }
  const ports = processes.map((each) => each.port)
  await Promise.all(browsers.flatMap((browser) => [use(browser, 'GET', ports, 100), use(browser, 'POST', [port], 500)]))
  t.comment([...statuses].map(([result, count]) => `${result}: ${count}`).join(', '))
  t.comment(`slowest GET ${slowest.toFixed(0)} ms`)
  t.same([...statuses.keys()].toSorted(), ['GET 200', 'POST 400'], 'no call is refused; the POST has no body')
  t.equal(gate.refreshes.length, 2 * USERS, 'each user has had three tokens')
  const calls = [...statuses.values()].reduce((sum, count) => sum + count, 0)
  t.equal(upstream.requests.length, calls, 'no call is repeated, so upstream has seen no token that was over')
})
