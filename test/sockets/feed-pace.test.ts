import { mock } from 'node:test'
import { test, type Test } from 'tap'
import { Backoff, Outage, PATIENCE_MS, RECONNECT } from '../../src/sockets/feed/upstream/recovery.ts'
import { FairShare } from '../../src/sockets/feed/upstream/fair-share.ts'

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

await test('An outage is given up once, 5 seconds after something began to wait for its end, unless it is over', (t) => {
  const pass = heldTime(t)
  let lost = 0
  const outage = new Outage(0, () => void lost++)
  for (const count of [1, 2]) {
    outage.wait()
    pass(PATIENCE_MS - 1)
    outage.wait()
    t.equal(lost, count - 1)
    pass(1)
    t.equal(lost, count)
    pass(PATIENCE_MS)
    t.equal(lost, count)
  }
  outage.wait()
  outage.over()
  pass(1)
  outage.wait()
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
  backoff.end()
  pass(4000)
  t.same([over, backoff.isWaiting], [0, false])
  t.end()
})

await test('FairShare bounds the browsers of a network for a minute after the latest refusal of upstream', (t) => {
  const pass = heldTime(t)
  const share = new FairShare(2, 100)
  const [address, neighbour, other] = ['2001:db8::1', '2001:db8::2', '2001:db8:0:1::1']
  let spent = 0
  const isAdmitted = (address: string): boolean => share.admits({ address, spend: () => spent++ >= 0 })
  for (let count = 0; count < 5; count++) t.equal(isAdmitted(address), true)
  share.refused()
  t.equal(isAdmitted(neighbour), false)
  t.equal(spent, 5, 'what does not go upstream costs its browser nothing')
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
