import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { feedWorld, reply, tick, type Message } from '../support/feed/world.ts'

interface Tick {
  readonly epoch: number
  readonly quote: number
}

const DECISION = new URL('../../docs/decisions/0010-one-upstream-subscription-for-many-browsers.md', import.meta.url)
const EXAMPLES = readFileSync(DECISION, 'utf8')
  .split('\n')
  .filter((line) => /^\| `\d+:\d/.test(line))
  .map((line) => line.split('|').slice(1, -1).map(ticksIn))

/** The ticks of a cell, each written `second:price`. */
function ticksIn(cell: string): Tick[] {
  return [...cell.matchAll(/(\d+):(\d+)/g)].map(([, epoch, quote]) => ({ epoch: Number(epoch), quote: Number(quote) }))
}

function history(ticks: readonly Tick[] = []): Message {
  const history = { prices: ticks.map(({ quote }) => quote), times: ticks.map(({ epoch }) => epoch) }
  return { msg_type: 'history', history, subscription: { id: 'h' } }
}

await test('the examples of decision 10 are what browsers get', async (t) => {
  t.equal(EXAMPLES.length, 5)
  const { market, join } = await feedWorld(t)
  for (const [index, [began, sent = [], given, follows = [], gets]] of EXAMPLES.entries()) {
    const asked = { ticks_history: `R_${index}`, end: 'latest', subscribe: 1 }
    const [first, second] = [await join(), await join()]
    first.send(asked)
    const stream = await market.next('ticks_history')
    reply(stream, history(began))
    for (const { quote, epoch } of sent) tick(stream, quote, epoch, 'h')
    for (let count = 0; count <= sent.length; count++) await first.next()
    second.send({ ...asked, count: 7 })
    reply(await market.next('ticks_history'), history(given))
    t.match(await second.next(), { history: history(given)['history'] })
    for (const { quote, epoch } of follows) tick(stream, quote, epoch, 'h')
    for (const _ of follows) await first.next()
    const got = (await second.rest()).map(({ tick }) => tick as Tick)
    t.same(
      got.map(({ epoch, quote }) => ({ epoch, quote })),
      gets,
      `row ${index + 1}`,
    )
  }
})
