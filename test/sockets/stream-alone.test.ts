import { test } from 'tap'
import type { Subscription } from '../../src/sockets/feed/streams/subscription.ts'
import { PATIENCE_MS } from '../../src/sockets/feed/upstream/index.ts'
import { LINGER, message, SPEC, SPREAD, streamAlone } from '../support/feed/stream-alone.ts'

const MINUTE = 60_000

await test('a stream has its request written by its delivery, and tells its link who waits before it is asked', (t) => {
  const { stream, browse, logged } = streamAlone(t)
  t.equal(stream.write(3), 'request 3')
  t.same([stream.phase, stream.size, stream.spec], ['unasked', 0, SPEC])
  browse()
  t.same([stream.size, logged()], [1, ['join true', 'link awaited']])
  stream.asked(7)
  t.equal(stream.phase, 'asked')
  browse()
  t.same([stream.size, logged()], [2, ['join true']])
  t.end()
})

await test('a stream becomes live with its first message, keeps the newest id, and passes every message on', (t) => {
  const { stream, browse, logged } = streamAlone(t)
  browse()
  stream.asked(7)
  logged()
  stream.received(message({ subscriptionId: 'id' }))
  t.same([stream.phase, stream.id, logged()], ['live', 'id', ['take body true', 'link answered true']])
  stream.received(message())
  t.same([stream.id, logged()], ['id', ['take body false']])
  stream.received(message({ subscriptionId: 'other' }))
  t.same([stream.id, logged()], ['other', ['take body false']])
  t.end()
})

await test('without browsers an unasked stream ends at once, and a live one lingers and is forgotten upstream', (t) => {
  const first = streamAlone(t)
  const only = first.browse()
  first.stream.leave(only)
  first.stream.leave(only)
  t.same(first.logged(), ['join true', 'link awaited', 'left true', 'ended true', 'link leave true'])
  t.same([only.isAttached, first.stream.phase, first.stream.size], [false, 'over', 0])
  first.stream.end()
  t.same(first.logged(), [])
  const { stream, live, browse, timers, world, logged } = streamAlone(t)
  const each = live()
  const other = browse()
  stream.leave(other)
  t.same([timers.delays, stream.unusedSince], [[], undefined])
  world.now = 2000
  stream.leave(each)
  t.same([timers.delays, stream.unusedSince, stream.phase], [[LINGER], 2000, 'live'])
  const again = browse()
  t.same([timers.delays, stream.unusedSince], [[], undefined])
  stream.leave(again)
  logged()
  timers.run()
  t.same([stream.phase, stream.id, stream.unusedSince], ['over', undefined, undefined])
  t.same(logged(), ['link forget 7 id', 'ended true', 'link leave true'])
  t.end()
})

await test('a stream that upstream does not answer ends a minute after its last browser, however late that is asked', (t) => {
  const { stream, browse, timers, logged } = streamAlone(t)
  const each = browse()
  stream.asked(7)
  stream.leave(each)
  t.same(timers.delays, [MINUTE])
  logged()
  stream.received(message({ subscriptionId: 'id' }))
  t.same([timers.delays, stream.unusedSince], [[LINGER], 1000], 'then it lingers instead')
  timers.run()
  t.equal(stream.phase, 'over')
  t.same(timers.delays, [])
  stream.leave({ isAttached: false } as Subscription)
  t.same(timers.delays, [])
  t.end()
})

await test('a lost stream lets its browsers go, has no request to forget, and waits for them to come back', (t) => {
  const { stream, live, browse, timers, world, logged } = streamAlone(t)
  const each = live()
  world.now = 10_000
  stream.lost()
  t.same(logged(), ['detach false', 'link depart browser'])
  t.same([stream.phase, stream.id, stream.size, each.isAttached], ['unasked', undefined, 0, false])
  t.same([timers.delays, stream.unusedSince], [[LINGER + SPREAD + PATIENCE_MS], undefined])
  stream.asked(8)
  t.same(timers.delays, [MINUTE])
  world.now = 11_000
  stream.received(message())
  t.same(timers.delays, [LINGER + SPREAD + PATIENCE_MS - 1000])
  world.now = 10_000 + SPREAD + PATIENCE_MS + 5000
  stream.leave(browse())
  t.same(timers.delays, [LINGER], 'the time to come back is over')
  t.end()
})

await test('a stream that lingers when it is lost is lost for nobody, and one that was never live ends', (t) => {
  const { stream, live, timers, logged } = streamAlone(t)
  stream.leave(live())
  logged()
  stream.lost()
  const expected = ['unasked', undefined, [LINGER + SPREAD + PATIENCE_MS], ['detach false']]
  t.same([stream.phase, stream.unusedSince, timers.delays, logged()], expected)
  timers.run()
  t.same([stream.phase, logged()], ['over', ['ended true', 'link leave true']], 'nobody has come back')
  const waiting = streamAlone(t)
  waiting.browse()
  waiting.logged()
  waiting.stream.lost()
  t.same(waiting.logged(), ['detach false', 'link depart browser', 'ended true', 'link leave true'])
  t.end()
})

await test('a stream that is lost again before it is renewed waits no longer for browsers to come back', (t) => {
  for (const hasReturned of [false, true]) {
    const { stream, live, browse, timers, world } = streamAlone(t)
    live()
    stream.lost()
    world.now += 2000
    if (hasReturned) browse()
    stream.lost()
    stream.asked(8)
    stream.received(message())
    t.same(timers.delays, [LINGER + SPREAD + PATIENCE_MS - 2000])
  }
  t.end()
})

for (const [what, isAsked, isAnswered] of [
  ['others on its connection wait in vain', false, false],
  ['it is asked for, and lost', true, false],
  ['it is renewed, and lost', true, true],
] as const) {
  await test(`a stream to which nobody comes back is over in time, however often ${what} meanwhile`, (t) => {
    const { stream, live, timers, world } = streamAlone(t)
    live()
    stream.lost()
    let left = LINGER + SPREAD + PATIENCE_MS
    for (let losses = 0; losses < 3; losses++) {
      t.same(timers.delays, [left])
      world.now += 100
      if (isAsked) {
        left -= 100
        stream.asked(8)
      }
      if (isAnswered) stream.received(message())
      stream.lost()
    }
    timers.run()
    t.equal(stream.phase, 'over')
    t.end()
  })
}

await test('a request that upstream leaves without an answer for ten seconds is overtaken by another one, if there is one', (t) => {
  const { stream, browse, world, logged } = streamAlone(t, true)
  browse()
  stream.beat()
  stream.asked(7)
  logged()
  world.now += 9999
  stream.beat()
  t.same(logged(), [])
  world.now += 1
  world.isOvertaken = false
  stream.beat()
  t.same(logged(), [])
  world.isOvertaken = true
  stream.beat()
  t.same(logged(), ['link forget 7 ', 'link leave true', 'link add true'])
  world.now += 10_000
  stream.beat()
  t.same([logged(), stream.phase], [[], 'unasked'], 'it is not asked for yet')
  stream.asked(8)
  stream.received(message({ subscriptionId: 'id' }))
  logged()
  world.now += 10_000
  stream.beat()
  t.same([logged(), stream.phase], [[], 'live'])
  const alone = streamAlone(t)
  alone.browse()
  alone.stream.asked(7)
  alone.logged()
  alone.world.now += 10_000
  alone.stream.beat()
  t.same(alone.logged(), [], 'ticks have no other request')
  t.end()
})

await test('a stream that no connection carries yet takes browsers, and ends', (t) => {
  const { stream, browse, logged } = streamAlone(t)
  stream.link = undefined
  const each = browse()
  t.same(logged(), ['join true'])
  stream.leave(each)
  t.same(logged(), ['left true', 'ended true'])
  t.equal(stream.phase, 'over')
  t.end()
})
