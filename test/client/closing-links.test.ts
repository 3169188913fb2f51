import { test } from 'tap'
import { shown } from '../support/client/shown-page.ts'
import { becomePage } from '../support/client/walked-page.ts'

// In a process of its own: the page that it walks through is that of the whole process.

becomePage()

await test('a connection that the server closes has until its end to say why, and is given up after 20 seconds of silence', async (t) => {
  for (const ends of [true, false]) {
    const { page, works, pass, state, waitsMs, lose, step } = shown(t)
    await step({ is: 'time', ms: 0 })
    await works()
    for (let seconds = 0; seconds < 30; seconds++) {
      await pass(1000)
      await step({ is: 'socket', how: 'pongs' })
    }
    await step({ is: 'socket', how: 'speaks' })
    // The close frame has arrived, and the network keeps the end of the connection.
    for (const socket of page.sockets) socket.readyState = 2
    await pass(ends ? 10_000 : 20_000)
    t.equal(state(), 'open')
    if (ends) {
      await lose(4429, 'rate_limited;retry_after=60')
      t.match(page.socket.status(), { state: 'waiting', code: 4429, reason: 'rate_limited' })
      t.equal(waitsMs(), 60_500)
    } else {
      await pass(1000)
      t.match(page.socket.status(), { state: 'waiting', code: 1006, reason: '' })
    }
  }
})
