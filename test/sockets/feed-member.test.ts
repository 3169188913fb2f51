import { test } from 'tap'
import { frameOf } from '../../src/sockets/feed/frame-of.ts'
import { memberHost, startMember } from '../support/feed/started-member.ts'
import { until } from '../support/until.ts'

await test('the messages of a browser wait while one is answered, and are then taken in order', async (t) => {
  const { member, socket, browser, taken } = await startMember(t)
  const release = member.hold()
  for (let count = 0; count < 5; count++) browser.send(`${count}`)
  await until(() => socket.isPaused, 'it is read no more')
  // As after every message that has been sent.
  member.relieve()
  t.same(taken, [])
  release()
  release()
  browser.send('5')
  await until(() => taken.length === 6)
  t.same(taken, ['0', '1', '2', '3', '4', '5'])
})

await test('messages do not wait for ever for what upstream does not answer', async (t) => {
  const { member, socket, browser, taken } = await startMember(t)
  const release = member.hold(50)
  browser.send('0')
  await until(() => taken.length === 1, 'it is taken after the longest time')
  // The answer that comes all the same must not end the wait for another one.
  const releaseNext = member.hold()
  release()
  browser.send('1')
  await until(() => socket.isPaused)
  t.same(taken, ['0'])
  releaseNext()
  await until(() => taken.length === 2)
  t.same(taken, ['0', '1'])
})

await test('a browser that leaves while its messages wait leaves nothing behind', async (t) => {
  const { member, socket, browser, taken } = await startMember(t)
  member.hold()
  browser.send('0')
  await until(() => socket.isPaused)
  // From here on, so that the message is there before the longest time is over.
  const release = member.hold(50)
  browser.terminate()
  await until(() => taken.includes('left'), 'its end is seen after the longest time')
  release()
  t.ok(member.isOver)
})

await test('prices stay in order when a browser that reads late gets an answer in the middle of a batch', async (t) => {
  const { member, browser, host } = await startMember(t)
  const prices: number[] = []
  browser.on('message', (data: Buffer) => {
    if (data[0] !== 'p'.charCodeAt(0)) return
    prices.push(Number(data.toString().slice(1)))
  })
  browser.pause()
  let price = 0
  const next = (): void => member.outbox.deliver(frameOf(Buffer.from(`p${++price}`.padEnd(32_768))), 'a stream')
  await until(() => {
    for (let count = 0; count < 50; count++) next()
    return host.conflated.messages > 3
  }, 'prices give way to newer ones')
  host.batch.hold()
  member.outbox.answer(frameOf(Buffer.from('an answer')))
  next()
  host.batch.flush()
  browser.resume()
  await until(() => prices.at(-1) === price, 'the newest price is the last')
  t.same(
    prices,
    prices.toSorted((one, other) => one - other),
  )
  t.ok(prices.length < price, `${price - prices.length} prices were left out`)
})

await test('a browser whose requests wait for too many answers is read no more until they are there', async (t) => {
  const host = memberHost()
  const { member, socket } = await startMember(t, { ...host, limits: { ...host.limits, maxBufferedBytes: 1000 } })
  member.awaits(1000)
  t.equal(socket.isPaused, false)
  member.awaits(1)
  t.equal(socket.isPaused, true)
  member.awaitsNoMore(501)
  t.equal(socket.isPaused, true, 'half of it may wait')
  member.awaitsNoMore(1)
  t.equal(socket.isPaused, true, 'the answer itself comes first')
  await until(() => !socket.isPaused)
})
