import { test } from 'tap'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { gated } from '../support/login/gated-provider.ts'
import { startWorld } from '../support/world.ts'
import { Collector, type ReceivedSpan } from '../support/telemetry/collector.ts'
import { timeAhead } from '../support/time/clock-ahead.ts'
import { until } from '../support/time/until.ts'
import { ACCOUNTS } from '../support/user.ts'
const LOCK = 'wait for the refresh lock'
/** A token lifetime that is over at once. */
const OVER = 0.001

/** A store that two instances share. */
class SharedStore extends MemoryStore {
  locks = 0

  override lock(...lock: Parameters<MemoryStore['lock']>): Promise<boolean> {
    this.locks++
    return super.lock(...lock)
  }
}

await test('A login, and a refresh: the call that refreshes has the call of the provider, and one on another instance the wait for it', async (t) => {
  const collector = await Collector.start(t)
  const store = new SharedStore()
  const { settings } = collector
  const world = await startWorld(t, { provider: gated(), upstream: 'sandbox', store, settings, instances: 2 })
  const { provider: gate, browser, server: first } = world
  const [, second = first] = world.servers
  gate.expiresIn = OVER
  await world.logIn()
  const login = await collector.span('GET /auth/callback')
  const namesIn = (span: ReceivedSpan): string[] => collector.trace(span).map(({ name }) => name)
  t.same(namesIn(login), ['GET /auth/callback', 'POST /oauth2/token'])
  t.match(collector.trace(login)[1], { parent: login.spanId, attributes: { 'oauth.request': 'exchange' } })

  gate.expiresIn = 3600
  const { promise: released, resolve: release } = Promise.withResolvers<boolean>()
  gate.before = () => released
  const call = (server: { readonly url: string }): Promise<Response> => {
    const tab = browser.clone()
    tab.page = new URL(server.url)
    return tab.fetch(ACCOUNTS, { headers: { 'x-csrf': '1' } })
  }
  const one = call(first)
  await until(() => gate.refreshes.length === 1)
  const other = call(second)
  await until(() => store.locks === 2)
  release(true)
  t.same([(await one).status, (await other).status], [200, 200])
  await until(() => collector.spans.filter(({ name }) => name === `GET ${ACCOUNTS}`).length === 2)
  const refresh = collector.spans.find(({ attributes }) => attributes['oauth.request'] === 'refresh')
  t.ok(refresh)
  const [owner, waiter] = collector.spans
    .filter(({ name }) => name === `GET ${ACCOUNTS}`)
    .toSorted(({ traceId }) => (traceId === refresh?.traceId ? -1 : 1))
  for (const span of [owner, waiter]) if (span) t.ok(namesIn(span).includes(LOCK), namesIn(span).join(', '))
  t.ok(owner && namesIn(owner).includes('POST /oauth2/token'))
  t.notOk(waiter && namesIn(waiter).includes('POST /oauth2/token'))
})

await test('A GET that goes on with its old token shows the renewal that it began, and no wait for it', async (t) => {
  const collector = await Collector.start(t)
  const { settings } = collector
  const world = await startWorld(t, { provider: gated(), upstream: 'sandbox', redis: true, settings })
  const { provider: gate, browser } = world
  gate.expiresIn = 600
  await world.logIn()
  timeAhead(t)(580_000)
  const call = async (): Promise<number> => (await browser.fetch(ACCOUNTS, { headers: { 'x-csrf': '1' } })).status
  t.equal(await call(), 200)
  await until(() => collector.spans.some(({ attributes }) => attributes['oauth.request'] === 'refresh'))
  // What the renewal has to say has been sent by then.
  t.equal(await call(), 200)
  const calls = (): ReceivedSpan[] => collector.spans.filter(({ name }) => name === `GET ${ACCOUNTS}`)
  await until(() => calls().length === 2)
  const [first] = calls()
  const names = first === undefined ? [] : collector.trace(first).map(({ name }) => name)
  t.ok(names.includes('POST /oauth2/token'), names.join(', '))
  t.notOk(names.includes('wait for a token renewal'), names.join(', '))
})
