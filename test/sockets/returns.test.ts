import { test } from 'tap'
import { after, CLOSE, UPSTREAM, type CloseStatus } from '../../src/sockets/close-codes.ts'
import { Returns } from '../../src/sockets/returns.ts'
import { clockAhead } from '../support/time/clock-ahead.ts'
import { until } from '../support/time/until.ts'
import { exactly } from '../support/exactly.ts'

/** A page every two seconds. */
const budget = { spread: (count: number) => 2000 * (count - 1) }

const logged: object[] = []
const log = { info: (details: object) => void logged.push(details) }

const secondsOf = (closes: readonly CloseStatus[]) => closes.map(({ retryAfterSeconds = 0 }) => retryAfterSeconds)

function returnsWith(enqueue: (durationMs: number) => Promise<number>, instances = 3): Returns {
  return new Returns({ budget, instances, enqueue, log })
}

const never = () => new Promise<never>(() => undefined)

await test('relays that close at once come back one by one, at the pace that is left to one of several instances', async (t) => {
  const returns = returnsWith(never)
  const closes = Array.from({ length: 4 }, () => returns.closed(CLOSE.upstreamLost))
  t.same(secondsOf(closes), [0, 6, 12, 18])
  t.ok(closes.every(({ code, reason }) => code === 1013 && reason === 'upstream_lost'))
})

await test('only closes of this server after which a page comes back get a time', async (t) => {
  const returns = returnsWith(never)
  returns.closed(CLOSE.upstreamLost)
  for (const close of [
    CLOSE.sessionExpired,
    CLOSE.tooBig,
    CLOSE.ourFault,
    UPSTREAM.closed(1012, Buffer.from('bye')).other,
    UPSTREAM.closed(1013, Buffer.from('upstream_lost')).other,
  ]) {
    t.equal(returns.closed(close), close, 'an open relay')
  }
  for (const close of [CLOSE.sessionExpired, CLOSE.tooManyRelays, after(CLOSE.rateLimited, 4000), CLOSE.notFound]) {
    t.equal(returns.refused('a', close), close, 'a refused handshake')
  }
  const timed = [CLOSE.slowConsumer, CLOSE.restarting, CLOSE.storeDown].map((close) => returns.closed(close))
  t.same(secondsOf(timed), [6, 12, 18])
})

await test('a session that is refused again and again keeps its place, and lengthens the queue for nobody', async (t) => {
  const returns = returnsWith(never)
  const refuse = (key: string) => returns.refused(key, after(CLOSE.upstreamBudget, 10_000)).retryAfterSeconds
  t.equal(refuse('a'), 10)
  t.equal(refuse('b'), 16)
  for (let count = 0; count < 100; count++) t.equal(refuse('b'), 16)
  t.equal(refuse('c'), 22)
  t.equal(returns.refused('d', CLOSE.upstreamUnreachable).retryAfterSeconds, 28)
  t.equal(returns.refused('a', after(CLOSE.upstreamBudget, 60_000)).retryAfterSeconds, 60, 'not before the budget says')
})

await test('the first of a queue waits as long as the budget says, and no second longer, whatever the clock says', async (t) => {
  const set = clockAhead(t)
  for (let count = 0; count < 1000; count++) {
    set(0.1 + count)
    const { retryAfterSeconds } = returnsWith(never).refused('a', after(CLOSE.upstreamBudget, 10_000))
    if (retryAfterSeconds !== 10) return t.fail(`${retryAfterSeconds} at ${performance.now()}`)
  }
  t.pass()
})

await test('a queue that is over makes room for a new one', async (t) => {
  const returns = new Returns({ budget: { spread: (count) => 2 * (count - 1) }, instances: 1, enqueue: never, log })
  t.equal(returns.closed(CLOSE.upstreamLost).retryAfterSeconds, undefined)
  for (let count = 0; count < 49; count++) returns.closed(CLOSE.upstreamLost)
  t.equal(returns.closed(CLOSE.upstreamLost).retryAfterSeconds, 1)
  await until(() => returns.closed(CLOSE.upstreamLost).retryAfterSeconds === undefined)
})

await test('a drain has a stretch of time of its own, behind those of other instances', async (t) => {
  const stretches: number[] = []
  const returns = returnsWith(async (durationMs) => {
    stretches.push(durationMs)
    return 30_000
  })
  const leave = Array.from({ length: 6 }, () => returns.join())
  leave[0]?.()
  t.equal(await returns.drain(1000), 38_000)
  t.match(logged, exactly({ relays: 5, firstAfterMs: 30_000, lastAfterMs: 38_000 }))
  t.same(stretches, [10_000], 'five relays are open')
  const closes = Array.from({ length: 5 }, () => returns.closed(CLOSE.restarting))
  t.same(secondsOf(closes), [30, 32, 34, 36, 38])
})

await test('a drain that cannot ask the others assumes that all of them drain', async (t) => {
  for (const enqueue of [never, () => Promise.reject(new Error('away'))]) {
    const returns = returnsWith(enqueue)
    returns.join()
    returns.join()
    t.equal(await returns.drain(10), 6000)
    t.same(secondsOf([returns.closed(CLOSE.restarting), returns.closed(CLOSE.restarting)]), [0, 6])
  }
})

await test('nobody is asked to stay away for more than an hour, however many there are and whatever upstream says', async (t) => {
  const HOUR = 3600
  const returns = returnsWith(never)
  const seconds = secondsOf(Array.from({ length: 5000 }, () => returns.closed(CLOSE.upstreamLost)))
  const placed = seconds.findIndex((each, at) => each !== 6 * at)
  t.equal(placed, HOUR / 6 + 1, 'places are given in order as long as the hour has room')
  const late = seconds.slice(placed)
  t.ok(late.every((each) => each >= HOUR / 2 && each <= HOUR))
  t.ok(new Set(late).size > 1000, 'the others are spread over the second half hour')
  t.equal(returns.refused('a', after(CLOSE.upstreamBudget, 7_200_000)).retryAfterSeconds, HOUR)
})

await test('a drain behind a queue that is full asks nobody to stay away for more than an hour', async (t) => {
  const returns = returnsWith(async () => 3_600_000)
  for (let count = 0; count < 10; count++) returns.join()
  t.equal(await returns.drain(1000), 3_600_000)
  for (const seconds of secondsOf(Array.from({ length: 10 }, () => returns.closed(CLOSE.restarting)))) {
    t.ok(seconds >= 1800 && seconds <= 3600)
  }
})

await test('places whose time has come are forgotten, although the queue never ends', async (t) => {
  let timeMs = Math.ceil(performance.now())
  t.intercept(performance, 'now', { value: () => timeMs })
  const returns = returnsWith(never, 1)
  for (let count = 0; count < 5; count++) returns.closed(CLOSE.upstreamLost)
  for (let count = 0; count < 20_000; count++) {
    if (returns.refused(`${count}`, CLOSE.upstreamUnreachable).retryAfterSeconds !== 10) t.fail('the queue has ended')
    timeMs += 2000
  }
  t.ok(returns.kept <= 1000, `${returns.kept} sessions keep a place`)
})
