import { test } from 'tap'
import { JarBrowser } from '../support/browser/jar-browser.ts'
import { chart, has, price } from '../support/client/followed.ts'
import { pageClient } from '../support/client/page-client.ts'
import { until } from '../support/time/until.ts'
import { startWorld } from '../support/world.ts'

for (const feed of ['relay', 'shared']) {
  await test(`PUBLIC_FEED=${feed}: a price list and a chart of the same symbol both go on`, async (t) => {
    const { server, upstream } = await startWorld(t, { settings: { PUBLIC_FEED: feed } })
    const socket = pageClient(t, new JarBrowser(), server.url).publicSocket()
    const list = ['R_50', 'R_100'].map((symbol) => price(socket, symbol))
    await has('tick', ...list)
    const shown = chart(socket, 100, 'R_100')
    await has('history', shown)
    await has('tick', shown)
    const history = shown.messages.find((message) => 'history' in message)?.['history'] as { prices: number[] }
    t.equal(history.prices.length, 100)
    for (const { errors } of [...list, shown]) t.same(errors, [])
    t.equal(upstream.sockets().public, 2)
    const before = list[1]?.messages.length ?? 0
    shown.stop()
    if (feed === 'relay') await until(() => upstream.sockets().public === 1)
    await until(() => (list[1]?.messages.length ?? 0) > before + 2)
  })
}
