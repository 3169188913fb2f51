import { test } from 'tap'
import { accountPage, goBack, read, visit } from '../support/browser/account-page.ts'
import { browsersOr } from '../support/browser/browsers.ts'
import { until } from '../support/time/until.ts'

await test('Chromium keeps the sockets of pages that were left, so that the sixth page gets none', async (t) => {
  const { page, first, sockets } = await accountPage(t, 'chrome', ['addEventListener'])
  t.equal(await first(), 'answer 1')
  for (const number of [1, 2, 3, 4]) {
    await visit(page, `/account.html?${number}`)
    t.equal(await first(), 'answer 1')
  }
  t.equal(await sockets(), 5)
  await visit(page, '/account.html?5')
  t.equal(await first(), 'end 4429 too_many_relays')
})

await test('Chromium delivers what a page sends in `pageshow` on a socket that it kept, and drops the answer', async (t) => {
  const { page, first, service } = await accountPage(t, 'chrome', ['addEventListener'])
  t.equal(await first(), 'answer 1')
  await page.evaluate(`addEventListener('pageshow', () => sockets[0].send('{"buy":"1","price":1,"req_id":7}'))`)
  await visit(page, '/other.html')
  await goBack(page, '/account.html')
  await until(async () => Number(await read(page, 'events.length')) > 1, 'the end of the socket')
  t.same(await page.evaluate('events'), ['answer 1', 'end 1006'])
  await until(() => service.count('buy') === 1, 'the order arrives')
})

for (const name of browsersOr('chrome')) {
  await test(`${name}: account.js of docs/frontends.md has one socket, on the page that the user sees`, async (t) => {
    const { page, first, sockets } = await accountPage(t, name)
    for (const number of [1, 2, 3, 4, 5, 6]) {
      t.equal(await first(), 'answer 1')
      await visit(page, `/account.html?${number}`)
    }
    t.equal(await first(), 'answer 1')
    await until(async () => (await sockets()) === 1, 'the sockets of the other pages are closed')
    await goBack(page, '/account.html?5')
    t.equal(await first(), 'answer 1')
    await until(async () => (await sockets()) === 1, 'one socket')
  })
}
