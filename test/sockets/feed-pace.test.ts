import { mock } from 'node:test'
import { test, type Test } from 'tap'
import { Backoff, RECONNECT } from '../../src/sockets/feed/upstream/backoff.ts'
import { Patience, PATIENCE_MS } from '../../src/sockets/feed/upstream/departures.ts'
import { FairShare } from '../../src/sockets/feed/upstream/fair-share.ts'
import { Pace } from '../../src/sockets/feed/browser/pace.ts'

/** Time that passes when a test says so. */
function heldTime(t: Test): (ms: number) => void {
  // Whole, so that sums and differences of it are exact.
  let now = Math.ceil(performance.now())
  t.intercept(performance, 'now', { value: () => now })
  mock.timers.enable({ apis: ['setTimeout'] })
  t.teardown(() => mock.timers.reset())
  return (ms) => {
    now += ms
    mock.timers.tick(ms)
  }
}

await test('Pace allows so many requests in each minute', (t) => {
  const pass = heldTime(t)
  const pace = new Pace(2)
  for (let minute = 0; minute < 3; minute++) {
    t.same([pace.spend(), pace.spend(), pace.spend()], [true, true, false])
    pass(59_999)
    t.equal(pace.spend(), false)
    pass(1)
  }
  t.end()
})

await test('Pace lets 200 messages be read in a second, and then no more until the next one', (t) => {
  const pass = heldTime(t)
  const pace = new Pace(60)
  let ready = 0
  const onReady = (): void => void ready++
  for (let second = 1; second <= 3; second++) {
    for (let count = 0; count < 200; count++) t.equal(pace.received(onReady), true)
    t.equal(pace.isExceeded, false)
    pass(400)
    for (let count = 0; count < 3; count++) t.equal(pace.received(onReady), false)
    pass(599)
    t.equal(pace.isExceeded, true)
    t.equal(ready, second - 1)
    pass(1)
    t.equal(pace.isExceeded, false)
    t.equal(ready, second, 'told once')
  }
  for (let count = 0; count < 201; count++) pace.received(onReady)
  pace.stop()
  pass(1000)
  t.equal(ready, 3)
  t.end()
})

await test('Patience is over once, 5 seconds after its first start, unless it is stopped', (t) => {
  const pass = heldTime(t)
  let lost = 0
  const patience = new Patience(() => void lost++)
  for (const count of [1, 2]) {
    patience.start()
    pass(PATIENCE_MS - 1)
    patience.start()
    t.equal(lost, count - 1)
    pass(1)
    t.equal(lost, count)
    pass(PATIENCE_MS)
    t.equal(lost, count)
  }
  patience.start()
  patience.stop()
  pass(1)
  patience.start()
  pass(PATIENCE_MS - 1)
  t.equal(lost, 2, 'the time begins anew')
  pass(1)
  t.equal(lost, 3)
  t.end()
})

await test('Backoff waits twice as long after each failure, and no longer than 4 seconds', (t) => {
  const pass = heldTime(t)
  const backoff = new Backoff(RECONNECT)
  for (const random of [0, 0.5, 1]) {
    t.intercept(Math, 'random', { value: () => random })
    for (const longest of [100, 200, 400, 800, 1600, 3200, 4000, 4000]) {
      let over = 0
      backoff.wait(() => void over++)
      const ms = Math.floor(longest * (1 - random / 2))
      pass(ms - 1)
      t.same([over, backoff.isWaiting], [0, true])
      pass(1)
      t.same([over, backoff.isWaiting], [1, false], `after ${ms} ms`)
    }
    backoff.reset()
  }
  let over = 0
  backoff.wait(() => void over++)
  backoff.stop()
  pass(4000)
  t.same([over, backoff.isWaiting], [0, false])
  t.end()
})

await test('FairShare bounds the browsers of a network for a minute after the latest refusal of upstream', (t) => {
  const pass = heldTime(t)
  const share = new FairShare(2, 100)
  const [address, neighbour, other] = ['2001:db8::1', '2001:db8::2', '2001:db8:0:1::1']
  const isAdmitted = (address: string): boolean => share.admits({ address, spend: () => true })
  for (let count = 0; count < 5; count++) t.equal(isAdmitted(address), true)
  share.refused()
  t.equal(isAdmitted(neighbour), false)
  t.same([isAdmitted(other), isAdmitted(other), isAdmitted(other)], [true, true, false])
  pass(59_999)
  t.equal(isAdmitted(other), false)
  share.refused()
  pass(59_999)
  t.same([isAdmitted(other), isAdmitted(other), isAdmitted(other)], [true, true, false], 'the next minute')
  pass(1)
  t.equal(isAdmitted(other), true)
  t.end()
})
