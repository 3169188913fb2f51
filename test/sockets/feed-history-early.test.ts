import { test } from 'tap'
import { feedWorld, quotes, reply, tick, type Message } from '../support/feed/world.ts'

const history = (...epochs: readonly number[]): Message => ({
  history: { prices: epochs, times: epochs },
  msg_type: 'history',
})

await test('prices that upstream sends before the history of their stream follow it, unless it contains them', async (t) => {
  const { market, join } = await feedWorld(t, { FEED_CACHE_SECONDS: '0' })
  const request = async (symbol: string, extra: Message = {}) => {
    const browser = await join()
    browser.send({ ticks_history: symbol, subscribe: 1, end: 'latest', ...extra })
    return { browser, asked: await market.next('ticks_history', symbol) }
  }

  await t.test('a history that ends before them', async (t) => {
    const { browser, asked } = await request('R_1')
    for (const price of [11, 12]) tick(asked, price)
    reply(asked, { ...history(9, 10), subscription: { id: 'sub-1' } })
    tick(asked, 13)
    t.match(await browser.next(), history(9, 10))
    t.same(quotes(await browser.rest()), [11, 12, 13])
  })

  await t.test('a history that contains some of them', async (t) => {
    const { browser, asked } = await request('R_2')
    for (const price of [11, 12]) tick(asked, price)
    reply(asked, { ...history(9, 10, 11), subscription: { id: 'sub-1' } })
    tick(asked, 13)
    t.match(await browser.next(), history(9, 10, 11))
    t.same(quotes(await browser.rest()), [12, 13])
  })

  await t.test('a history that contains more', async (t) => {
    const { browser, asked } = await request('R_3')
    tick(asked, 11)
    reply(asked, { ...history(9, 10, 11, 12), subscription: { id: 'sub-1' } })
    for (const price of [12, 13]) tick(asked, price)
    t.match(await browser.next(), history(9, 10, 11, 12))
    t.same(quotes(await browser.rest()), [13])
  })

  await t.test('a history that was asked to end long ago', async (t) => {
    const { browser, asked } = await request('R_4', { end: 5 })
    tick(asked, 11)
    reply(asked, { ...history(4, 5), subscription: { id: 'sub-1' } })
    tick(asked, 12)
    t.match(await browser.next(), history(4, 5))
    t.same(quotes(await browser.rest()), [11, 12])
  })
})
