import { test } from 'tap'
import type { LoginTicket } from '../../src/login/login-transactions.ts'
import { Unsent } from '../../src/store/links/unsent.ts'
import { StoreUnavailable } from '../../src/store/store.ts'
import { alone, begun } from '../support/login/logins-alone.ts'
import { HeldTimers } from '../support/time/held-timers.ts'
import { until } from '../support/time/until.ts'

await test('a callback whose beginning got no reply can be repeated', async (t) => {
  const browser = alone()
  const { cookie, key } = await browser.start()
  const expiresAt = (await browser.store.read(key))?.expiresAt
  const replace = browser.store.replace.bind(browser.store)
  browser.store.replace = async (...args) => {
    await replace(...args)
    browser.store.replace = replace
    throw new StoreUnavailable('no reply')
  }
  await t.rejects(browser.logins.consume(browser.header(), cookie.state), StoreUnavailable)
  await until(async () => (await browser.store.read(key))?.expiresAt === expiresAt, 'it is taken back')
  await begun(t, browser, cookie.state)
})

await test('a callback whose beginning was not even sent leaves nothing to take back', async (t) => {
  const retries = new HeldTimers(t, 'setTimeout', 250)
  const browser = alone()
  const { cookie } = await browser.start()
  const replace = browser.store.replace.bind(browser.store)
  browser.store.replace = () => Promise.reject(new StoreUnavailable(new Unsent('there is no connection')))
  await t.rejects(browser.logins.consume(browser.header(), cookie.state), StoreUnavailable)
  t.equal(retries.size, 0)
  browser.store.replace = replace
  await begun(t, browser, cookie.state)
})

await test('of two callbacks at the same moment without a reply the one that has begun the login is taken back', async (t) => {
  const browser = alone()
  const { cookie } = await browser.start()
  const replace = browser.store.replace.bind(browser.store)
  const begins: boolean[] = []
  browser.store.replace = async (...args) => {
    begins.push(await replace(...args))
    throw new StoreUnavailable('no reply')
  }
  const consume = () => browser.logins.consume(browser.header(), cookie.state)
  t.match(await Promise.allSettled([consume(), consume()]), [{ status: 'rejected' }, { status: 'rejected' }])
  t.same(begins, [true, false])
  browser.store.replace = replace
  await begun(t, browser, cookie.state)
})

await test('a browser that repeats its callback where a write is refused takes nobody else the way back', async (t) => {
  const retries = new HeldTimers(t, 'setTimeout', 250)
  const browser = alone()
  const [repeated, other] = [await browser.start(), await browser.start()]
  const expiresAt = (await browser.store.read(other.key))?.expiresAt
  const replace = browser.store.replace.bind(browser.store)
  browser.store.replace = async (key, ...args) => {
    if (key === other.key) await replace(key, ...args)
    throw new StoreUnavailable('refused, or no reply')
  }
  const consume = ({ cookie }: LoginTicket) => browser.logins.consume(browser.header(), cookie.state)
  for (let times = 0; times < 10_000; times++) await consume(repeated).catch(() => undefined)
  await t.rejects(consume(other), StoreUnavailable)
  browser.store.replace = replace
  retries.run()
  await until(async () => (await browser.store.read(other.key))?.expiresAt === expiresAt, 'it is taken back')
  await begun(t, browser, other.cookie.state)
})
