import { createFakeClient, type FakeClient } from 'trading-bff-client/testing'
import { beforeEach, expect, test, vi } from 'vitest'
import { showPage } from './page.ts'

const BOUGHT = {
  contract_id: 7,
  balance_after: 90,
  buy_price: 10,
  longcode: '',
  payout: 20,
  purchase_time: 1,
  shortcode: '',
  start_time: 1,
  transaction_id: 8,
}
const text = (selector: string) => document.querySelector(selector)?.textContent
const shows = (selector: string, expected: string) => vi.waitFor(() => expect(text(selector)).toBe(expected))
const isOpen = () => vi.waitFor(() => expect(document.querySelector('output')?.className).toBe('open'))

let client: FakeClient

beforeEach(async () => {
  client = createFakeClient({ session: { subject: 'user-1' } })
  client.server.reply('ticks', { tick: { epoch: 1, quote: 1.5 } })
  showPage(client, document.body)
  await isOpen()
  return () => {
    vi.useRealTimers()
    client.close()
  }
})

test('it runs in jsdom', () => {
  expect(navigator.userAgent).toContain('jsdom')
})

test('a price is shown as soon as it arrives', async () => {
  await shows('output', '1.5')
  client.server.push({ ticks: 'R_100' }, { tick: { epoch: 2, quote: 1.6 } })
  expect(text('output')).toBe('1.6')
})

test('the page offers the login after the session has ended, and Buy after the next one', async () => {
  await client.server.endSession('idle')
  expect(text('a')).toBe('You were away')
  expect(document.querySelector('a')?.hidden).toBe(false)
  expect(document.querySelector('button')?.disabled).toBe(true)
  await client.server.logIn()
  expect(document.querySelector('button')?.disabled).toBe(false)
})

test('a contract is bought once', async () => {
  client.server.reply('buy', { buy: BOUGHT })
  document.querySelector('button')?.click()
  await shows('p', 'Bought 7')
  expect(client.server.messages.filter(({ message }) => 'buy' in message)).toHaveLength(1)
})

test('after a lost answer, the page does not say that nothing was bought', async () => {
  client.server.reply('buy', () => client.server.disconnect())
  document.querySelector('button')?.click()
  await shows('p', 'Look at your contracts')
})

test('without an answer the page gives up, which fake timers do not wait for', async () => {
  client.server.reply('buy', () => undefined)
  vi.useFakeTimers()
  document.querySelector('button')?.click()
  await vi.advanceTimersByTimeAsync(30_000)
  expect(text('p')).toBe('Look at your contracts')
})

test('offline, nothing is bought, and prices come again afterwards', async () => {
  client.server.setNetwork('offline')
  expect(navigator.onLine).toBe(false)
  document.querySelector('button')?.click()
  await shows('p', 'Nothing was bought')
  expect(document.querySelector('output')?.className).toBe('waiting')
  client.server.setNetwork('up')
  await isOpen()
  client.server.push({ ticks: 'R_100' }, { tick: { epoch: 3, quote: 1.7 } })
  await shows('output', '1.7')
})
