import { equal } from 'node:assert/strict'
import { setTimeout as pause } from 'node:timers/promises'
import type { Page } from 'puppeteer-core'
import { test, type Test } from 'tap'
import { browsersOr, logInBy, testWindow, type BrowserName } from '../support/browser/browsers.ts'
import { networkWorld, type NetworkWorld } from '../support/client/network-world.ts'
import { asleep } from '../support/time/stopped-process.ts'
import { until } from '../support/time/until.ts'
import { within } from '../support/time/within.ts'

const SYMBOLS = ['R_10', 'R_50', 'R_100']
/** Longer than the jump of the clock by which the package notices that the machine slept. */
const SLEEP_MS = 7000

/** A page of a user who is logged in, with a trading socket and three streams. */
interface TradingPage extends NetworkWorld {
  readonly page: Page
  /** Stops everything that runs in the browser. */
  readonly sleep: (during: () => Promise<unknown>) => Promise<unknown>
  readonly state: () => Promise<string>
  /** Resolves once the connection works and has each stream exactly once. */
  readonly streamsAreBack: () => Promise<void>
}

async function tradingPage(t: Test, name: BrowserName): Promise<TradingPage> {
  const [world, window] = await Promise.all([networkWorld(t), testWindow(t, name)])
  const page = await window.newPage()
  await logInBy(page, `${world.url}/auth/login`)
  await until(async () => (await page.evaluate('globalThis.client?.session.get().status')) === 'active', 'active')
  await page.evaluate(`trade(${JSON.stringify(SYMBOLS)})`)
  const state = (): Promise<string> => page.evaluate('socket.status().state') as Promise<string>
  let quote = 0
  const streamsAreBack = async (): Promise<void> => {
    const { service } = world
    await until(async () => (await state()) === 'open' && service.streams === SYMBOLS.length, 'streams', 20_000)
    equal(service.count('ticks', service.connections), SYMBOLS.length)
    service.tick(++quote)
    // The first message of each stream has the quote 0.
    const isBack = (quotes: number[]): boolean => quotes.slice(-2).join() === `0,${quote}`
    await until(async () => ((await page.evaluate('Object.values(quotes)')) as number[][]).every(isBack), 'ticks')
  }
  await streamsAreBack()
  return {
    ...world,
    page,
    sleep: (during) => asleep(Number(window.browser().process()?.pid), during),
    state,
    streamsAreBack,
  }
}

for (const name of browsersOr('chrome')) {
  await test(`${name}: a trading page on a bad network, two instances and a machine that sleeps`, async (t) => {
    const { page, service, network, sleep, state, streamsAreBack, ...world } = await tradingPage(t, name)
    // The title cannot be read while the page navigates.
    const shows = (title: string): Promise<boolean> =>
      page.title().then(
        (found) => found === title,
        () => false,
      )
    const buy = (): Promise<unknown> => page.evaluate('buy()')
    t.beforeEach(async () => {
      equal(String(await page.evaluate('faults.splice(0)')), '')
      await page.evaluate('void states.splice(0)')
      service.seen.length = 0
    })

    await t.test('offline for 15 s: the page knows, and a buy is not sent, neither at once nor later', async (t) => {
      const startedAt = Date.now()
      network.isStalled = true
      await page.setOfflineMode(true)
      await until(async () => (await state()) !== 'open')
      within(t, Date.now() - startedAt, 5000, 'until the page knows')
      t.equal(await buy(), 'not_sent')
      await pause(15_000 - (Date.now() - startedAt))
      t.equal(await buy(), 'not_sent')
      network.isStalled = false
      await page.setOfflineMode(false)
      await streamsAreBack()
      t.equal(service.count('buy'), 0)
      t.equal(await buy(), 'bought')
      t.equal(service.count('buy'), 1)
    })

    await t.test('a network that stalls without notice: a buy is not sent, neither at once nor later', async (t) => {
      network.isStalled = true
      await pause(3500)
      t.equal(await state(), 'open')
      const clickedAt = Date.now()
      t.equal(await buy(), 'not_sent')
      within(t, Date.now() - clickedAt, 1500, 'until the buy is refused')
      network.isStalled = false
      const { pings } = service
      // What the network has withheld arrives in order, so a buy would have arrived before this ping.
      await until(async () => (await buy()) === 'bought')
      t.ok(service.pings > pings)
      t.equal(service.count('buy'), 1)
    })

    await t.test('a page that is busy when the reply to its ping arrives: a buy is not sent late', async (t) => {
      await pause(3500)
      await page.evaluate('globalThis.late = buy(); for (const end = Date.now() + 2000; Date.now() < end; );')
      t.equal(await page.evaluate('late'), 'not_sent')
      t.equal(await buy(), 'bought')
      t.equal(service.count('buy'), 1)
    })

    await t.test('an instance is killed: the other serves the page, with each stream once', async () => {
      await world.killPresent()
      await until(async () => (await state()) !== 'open')
      await streamsAreBack()
    })

    await t.test(
      'both instances are killed and one restarts: a buy is not sent, and each stream is back once',
      async (t) => {
        await world.killAll()
        await until(async () => (await state()) === 'waiting')
        t.equal(await buy(), 'not_sent')
        await world.restartKilled()
        await streamsAreBack()
        t.equal(service.count('buy'), 0)
      },
    )

    await t.test(
      'the user leaves the page and returns: its requests settle, and each stream is back once',
      async (t) => {
        service.instead['time'] = () => undefined
        await page.evaluate('globalThis.pending = socket.request({ time: 1 }).catch(({ code }) => code); undefined')
        await until(() => service.count('time') === 1)
        delete service.instead['time']
        await page.evaluate(`void (location.href = '/other.html')`)
        await until(() => service.streams === 0)
        await until(() => shows('other'))
        await page.evaluate('history.back()')
        await until(() => shows('page'))
        // Firefox does not keep a page that has a WebSocket, so it loads the page again.
        await until(async () => (await page.evaluate('globalThis.isRestored')) === (name === 'chrome'))
        if (name === 'chrome') t.equal(await page.evaluate('pending'), 'connection_lost')
        else await page.evaluate(`trade(${JSON.stringify(SYMBOLS)})`)
        await streamsAreBack()
      },
    )

    await t.test('the machine sleeps: the connection is checked before it counts as open', async (t) => {
      const { connections } = service
      await sleep(() => pause(SLEEP_MS))
      await until(async () => (await page.evaluate('states.join()')) === 'stale,open')
      t.equal(await buy(), 'bought')
      t.same([service.connections, service.count('buy')], [connections, 1])
    })

    await t.test(
      'the connection is lost while the machine sleeps: a buy is not sent, and each stream is back once',
      async (t) => {
        await sleep(async () => {
          network.isStalled = true
          network.forget()
          await pause(SLEEP_MS)
        })
        t.equal(await buy(), 'not_sent')
        network.isStalled = false
        await streamsAreBack()
        t.equal(service.count('buy'), 0)
      },
    )

    await t.test('a message that came before the loss does not make the connection open after the sleep', async (t) => {
      await sleep(async () => {
        service.tick(1)
        await pause(500)
        network.isStalled = true
        network.forget()
        await pause(SLEEP_MS)
      })
      await until(async () => String(await page.evaluate('states')).startsWith('stale'))
      // The page may connect again within a millisecond, so the state itself can be missed. The list cannot.
      await until(async () => String(await page.evaluate('states')).includes('waiting'), 'waiting')
      t.notOk(String(await page.evaluate('states')).includes('open'))
      network.isStalled = false
      await streamsAreBack()
    })

    await t.test('the clock jumps: the connection is stale until it replies to a ping', async (t) => {
      const { connections } = service
      for (const by of [3600_000, -7200_000]) {
        await page.evaluate(`{ states.splice(0); const { now } = Date; Date.now = () => now() + ${by} }`)
        await until(async () => (await page.evaluate('states.join()')) === 'stale,open')
      }
      t.equal(service.connections, connections)
    })
  })
}
