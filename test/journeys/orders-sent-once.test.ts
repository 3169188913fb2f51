import { test } from 'tap'
import { browsersOr, logInBy, testWindow } from '../support/browser/browsers.ts'
import { startWorld, API } from '../support/world.ts'

/** Makes a call without an Idempotency-Key from a page, and returns the status and the code of the problem. */
const ORDER = `(async () => {
  const headers = { 'x-csrf': '1', 'content-type': 'application/json' }
  const response = await fetch('/api/payment-agents/v1/transfer', { method: 'POST', headers, body: '{"amount":1}' })
  return [response.status, (await response.json()).code]
})()`

for (const name of browsersOr('chrome')) {
  await test(`${name} does not send an order again, whatever becomes of its response`, async (t) => {
    // Both browsers repeat even a POST if a connection that they have used before closes without a byte of a response, and
    // after some statuses.
    const { upstream, server } = await startWorld(t, {
      ...API,
      settings: { STATIC_DIR: t.testdir({ 'index.html': '<p>a page' }) },
    })
    const window = await testWindow(t, name)
    const page = await window.newPage()
    await logInBy(page, `${server.url}/auth/login`)
    t.same(await page.evaluate(ORDER), [200, null])
    for (const ends of ['end', 'resetAndDestroy'] as const) {
      upstream.reset()
      upstream.answer = (_request, socket) =>
        socket.write('HTTP/1.1 201 Created\r\nContent-Length: 10\r\n\r\n', () => setImmediate(() => socket[ends]()))
      t.same(await page.evaluate(ORDER), [502, 'upstream_lost'])
      t.equal(upstream.requests.length, 1)
    }
    for (const status of [408, 421]) {
      upstream.reset()
      upstream.answer = (_request, socket) => socket.write(`HTTP/1.1 ${status} \r\nContent-Length: 2\r\n\r\n{}`)
      t.same(await page.evaluate(ORDER), [502, 'upstream_error'], `${status}`)
      t.equal(upstream.requests.length, 1)
    }
  })
}
