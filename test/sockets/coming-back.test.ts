import { test } from 'tap'
import { until } from '../support/time/until.ts'
import type { BrowserSocket } from '../support/browser/browser-socket.ts'
import { PUBLIC, TRADING } from '../support/user.ts'
import { startWorld, type World, RELAY } from '../support/world.ts'

/** One-time URLs have room for 12 to 48 a minute, depending on what else there is: one every 1.25 to 5 s. */
const BUDGET = { UPSTREAM_BUDGET: '60/60', DRAIN_SECONDS: '4', UPSTREAM_BUDGET_INSTANCES: '2' }
const GAPS = [60 / 48, 60 / 12] as const

async function openTrading(world: World<'scripted'>, count: number): Promise<BrowserSocket[]> {
  const clients: BrowserSocket[] = []
  for (let index = 0; index < count; index++) clients.push((await world.joined(TRADING)).client)
  return clients
}

/** The times in the reasons of closes, in order. */
async function timesIn(clients: readonly BrowserSocket[], code: number, reason: string): Promise<number[]> {
  const closes = await Promise.all(clients.map(({ closed }) => closed))
  const times = closes.map(({ code: seen, reason: text }) => {
    const [, bare, seconds = '0'] = /^(\w+)(?:;retry_after=(\d+))?$/.exec(text) ?? []
    if (seen !== code || bare !== reason) throw new Error(`closed with ${seen} ${text}`)
    return Number(seconds)
  })
  return times.sort((one, other) => one - other)
}

/** Whether each time is so much later than the one before it. */
function areApart(times: readonly number[], least: number, most: number): boolean {
  return times.every((seconds, index) => {
    const apart = seconds - (times[index - 1] ?? seconds)
    return index === 0 || (apart >= least && apart <= most)
  })
}

await test('a server that drains gives every trading socket its own time, and public sockets none', async (t) => {
  const world = await startWorld(t, { ...RELAY, settings: BUDGET })
  const trading = await openTrading(world, 5)
  const market = await world.socket(PUBLIC).opened()
  await until(() => world.upstream.open === 6)
  const closing = world.server.close()
  const times = await timesIn(trading, 1012, 'shutting_down')
  t.same(await market.closed, { code: 1012, reason: 'shutting_down' })
  await closing
  t.comment(`seconds: ${times.join(', ')}`)
  // The sockets close within two seconds, and times are whole seconds.
  t.ok(areApart(times, GAPS[0] - 2, GAPS[1] + 1))
  t.ok((times[4] ?? 0) >= 4 * GAPS[0] - 2)
})

await test('after a loss of upstream the trading sockets come back at the pace that is left to one instance', async (t) => {
  const world = await startWorld(t, { ...RELAY, settings: BUDGET })
  const trading = await openTrading(world, 4)
  const { client: market, peer } = await world.joined(PUBLIC)
  peer.terminate()
  t.same(await market.closed, { code: 1013, reason: 'upstream_lost' })
  await world.upstream.close()
  const times = await timesIn(trading, 1013, 'upstream_lost')
  t.comment(`seconds: ${times.join(', ')}`)
  t.equal(times[0], 0)
  t.ok(areApart(times, 2 * GAPS[0] - 1, 2 * GAPS[1] + 1), 'each instance has half of the room')
  const [place = 0] = await timesIn([world.socket(TRADING)], 1013, 'upstream_unreachable')
  t.ok(place > (times[3] ?? 0), 'who tries again meanwhile gets a place behind them')
  const [again = 0] = await timesIn([world.socket(TRADING)], 1013, 'upstream_unreachable')
  t.ok(again <= place && again > place - 3, 'and keeps it')
  const labels = [...(await world.metric('bff_relay_refusals_total')).keys()]
  t.same(labels, ['reason="upstream_unreachable"'], 'the label has no time')
  t.equal(world.server.log.find(({ msg }) => msg === 'relay refused')?.['reason'], 'upstream_unreachable')
})

await test('a trading socket that the budget refuses is told when to come back, and costs no one-time URL', async (t) => {
  const world = await startWorld(t, { ...RELAY, settings: { ...BUDGET, UPSTREAM_BUDGET: '5/60' } })
  const times: number[] = []
  await openTrading(world, 4)
  for (let count = 0; count < 3; count++) {
    const { code, reason } = await world.socket(TRADING).closed
    t.equal(code, 4429)
    times.push(Number(/^upstream_budget;retry_after=(\d+)$/.exec(reason)?.[1]))
  }
  t.ok(
    times.every((seconds) => seconds > 0 && seconds <= 90),
    times.join(', '),
  )
  t.equal(world.upstream.otpRequests.length, 4)
})

await test('without a budget no close has a time', async (t) => {
  const world = await startWorld(t, { ...RELAY, settings: { DRAIN_SECONDS: '2' } })
  const [first, second] = [await world.joined(TRADING), await world.joined(TRADING)]
  first.peer.terminate()
  t.same(await first.client.closed, { code: 1013, reason: 'upstream_lost' })
  await Promise.all([world.server.close(), second.client.closed])
  t.same(await second.client.closed, { code: 1012, reason: 'shutting_down' })
})

for (const [seconds, asked] of [
  ['7', 7],
  ['999999999', 3600],
  ['99999999999', 3600],
] as const) {
  await test(`upstream's 429 with Retry-After ${seconds} asks the page to stay away for ${asked} seconds`, async (t) => {
    const world = await startWorld(t, RELAY)
    world.upstream.onOtp = (_request, response) => void response.writeHead(429, { 'retry-after': seconds }).end()
    t.same(await world.socket(TRADING).closed, { code: 4429, reason: `rate_limited;retry_after=${asked}` })
  })
}
