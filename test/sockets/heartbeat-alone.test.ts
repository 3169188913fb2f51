import { setImmediate as nextTurn } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { Heartbeat } from '../../src/sockets/heartbeat.ts'
import { ManualTimers } from '../support/time/manual-timers.ts'
import { stoppedClocks } from '../support/time/stopped-clocks.ts'

const EVERY_MS = 25_000

/** A heartbeat, and what it does while time passes as a test says. */
function beating(t: Test) {
  const pass = stoppedClocks(t)
  const timers = new ManualTimers(t)
  const wire = { bytesRead: 0 }
  const done: string[] = []
  const heartbeat = new Heartbeat({ wire, ping: () => done.push('ping') }, () => done.push('silent'))
  t.teardown(() => heartbeat.stop())
  return {
    heartbeat,
    wire,
    timers,
    pass,
    /** @returns what has been done once its time is over */
    beat: async (lateMs = 0): Promise<string[]> => {
      const [ms = NaN] = timers.delays
      pass(ms + lateMs)
      timers.run()
      await nextTurn()
      return done.splice(0)
    },
  }
}

await test('a peer is pinged every 25 s, and is gone once it was silent for twice as long; nothing follows', async (t) => {
  const { heartbeat, beat, timers } = beating(t)
  for (let count = 0; count < 3; count++) {
    t.same(timers.delays, [EVERY_MS])
    t.same(await beat(), ['ping'])
    heartbeat.heard()
  }
  t.same(await beat(), ['ping'])
  t.same(await beat(), ['silent'])
  t.same(timers.delays, [])
})

await test('a peer that was heard between two pings is gone as soon as it was silent for long enough', async (t) => {
  const { heartbeat, beat, pass, timers } = beating(t)
  await beat()
  pass(10_000.5)
  heartbeat.heard()
  pass(EVERY_MS - 10_000.5)
  timers.run()
  await nextTurn()
  t.same(await beat(), ['ping', 'ping'])
  t.same(timers.delays, [10_001], 'and not one more interval later')
  t.same(await beat(), ['silent'])
})

await test('bytes that have come since the last beat are a sign of life at that beat', async (t) => {
  const { wire, beat } = beating(t)
  t.same(await beat(), ['ping'])
  wire.bytesRead++
  t.same(await beat(), ['ping'])
  t.same(await beat(), ['silent'])
})

await test('a paused peer gets no ping and is not gone, and the time does not count', async (t) => {
  const { heartbeat, beat, pass } = beating(t)
  heartbeat.pause()
  for (let count = 0; count < 4; count++) t.same(await beat(), [])
  t.equal(heartbeat.isPaused, true)
  pass(1)
  heartbeat.resume()
  t.equal(heartbeat.isPaused, false)
  t.equal(heartbeat.silentMs(performance.now()), 0)
  t.same(await beat(), ['ping'])
})

await test('a heartbeat that was stopped does nothing more', (t) => {
  const { heartbeat, timers } = beating(t)
  heartbeat.stop()
  t.same(timers.delays, [])
  t.end()
})

await test('a standstill of any length is no silence of a peer: it is pinged, and lost only if it does not answer', async (t) => {
  for (const standstillMs of [EVERY_MS, 10 * EVERY_MS]) {
    const { beat } = beating(t)
    t.same(await beat(standstillMs), ['ping'], `${standstillMs} ms`)
    t.same(await beat(), ['silent'], 'it has not answered the ping')
  }
})

await test('what a peer read while it was paused is no sign of life of a later time', (t) => {
  const { heartbeat, pass } = beating(t)
  heartbeat.pause()
  pass(10 * EVERY_MS)
  heartbeat.heard()
  pass(EVERY_MS)
  heartbeat.resume()
  t.equal(heartbeat.silentMs(performance.now()), 0)
  t.equal(heartbeat.silentMs(performance.now() + EVERY_MS), EVERY_MS)
  t.end()
})
