import { test } from 'tap'
import type { SocketError } from '../../client/dist/client.js'
import { shown } from '../support/client/shown-page.ts'
import { becomePage } from '../support/client/walked-page.ts'

// In a process of its own: the page that it walks through is that of the whole process.

becomePage()

await test('a socket whose session may have ended ends with it, and is opened again if it has not', async (t) => {
  for (const to of ['log in', 'log out'] as const) {
    const { page, lose, works, pass, state, step } = shown(t)
    await step({ is: 'session', to: 'log in' })
    await step({ is: 'answer', how: 'true' })
    await works()
    await step({ is: 'session', to })
    await step({ is: 'answer', how: 'true' })
    await lose(4401)
    t.equal(state(), 'waiting')
    for (let checks = 0; checks < 4; checks++) {
      await step({ is: 'answer', how: 'true' })
      await pass(600)
    }
    t.match(page.socket.status(), to === 'log in' ? { state: 'connecting' } : { state: 'ended', code: 4401 })
  }
})

await test('a command on a connection that was silent for 3 seconds waits a second for the reply to a ping', async (t) => {
  for (const [silentMs, replyMs, pings, outcome] of [
    [3000, Infinity, 0, 'sent'],
    [3001, 999, 1, 'sent'],
    [3001, 1001, 1, 'not_sent'],
  ] as const) {
    const { page, works, pass, step } = shown(t)
    const socket = page.client.tradingSocket('CR1')
    await step({ is: 'time', ms: 0 })
    await works()
    await pass(silentMs)
    const before = page.pings
    let refused: string | undefined
    socket.command({ sell: 1, price: 0 }).catch(({ code }: SocketError) => (refused = code))
    await step({ is: 'time', ms: 0 })
    t.equal(page.pings - before, pings)
    t.equal(page.sales, Number(pings === 0))
    await pass(Math.min(replyMs, 2000))
    await step({ is: 'socket', how: 'pongs' })
    t.equal(page.sales, Number(outcome === 'sent'), `${silentMs} and ${replyMs} ms`)
    t.equal(refused, outcome === 'sent' ? undefined : outcome)
  }
})

await test('a request has 15 seconds for its reply, and a command 30', async (t) => {
  for (const [kind, seconds] of [
    ['request', 15],
    ['command', 30],
  ] as const) {
    const { page, works, pass, step } = shown(t)
    const socket = page.client.tradingSocket('CR1')
    await step({ is: 'time', ms: 0 })
    await works()
    let code: string | undefined
    const sent = kind === 'request' ? socket.request({ time: 1 }) : socket.command({ sell: 1, price: 0 })
    sent.catch((error: SocketError) => (code = error.code))
    for (let passed = 1; passed <= seconds; passed++) {
      t.equal(code, undefined)
      await pass(1000)
      await step({ is: 'socket', how: 'speaks' })
    }
    t.equal(code, 'timeout', kind)
  }
})

await test('what was sent on a connection that a page leaves has the code of a lost connection', async (t) => {
  const { page, works, step } = shown(t)
  const socket = page.client.tradingSocket('CR1')
  await step({ is: 'time', ms: 0 })
  await works()
  let lost: unknown
  socket.command({ sell: 1, price: 0 }).catch((error: unknown) => (lost = error))
  await step({ is: 'page', event: 'pagehide' })
  t.match(lost, { code: 'connection_lost', closeCode: 1006, outcome: 'unknown' })
})
