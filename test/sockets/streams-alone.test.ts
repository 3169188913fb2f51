import { test } from 'tap'
import { network } from '../../src/limits/networks.ts'
import { standstill } from '../../src/time/standstill.ts'
import { answer, history, message, MINE, streamsAlone, ticks } from '../support/feed/streams-alone.ts'
import { replace } from '../support/time/replace.ts'

await test('browsers that ask for the ticks of the same symbol share a stream, and each symbol has its own', (t) => {
  const { streams, started, join, logged } = streamsAlone(t)
  const [a, b] = [join('a'), join('b', '198.51.100.1')]
  streams.subscribeToTicks(a, ticks('A'))
  t.same([a.lastNumber, logged()], [1, []])
  streams.subscribeToTicks(b, ticks('A'))
  t.same(logged(), ['hit ticks'])
  streams.subscribeToTicks(a, ticks('B'))
  t.same([a.lastNumber, logged()], [2, []])
  t.same([started.length, streams.size, streams.subscribers], [2, 2, 3])
  t.same(started[0]?.spec, { identity: 'ticks A', type: 'ticks', symbol: 'A', startedBy: network(MINE) })
  t.equal(a.subscriptions.get('ticks B')?.number, 2)
  t.match(String(started[0]?.write(7)), '{"ticks":"A"')
  t.end()
})

await test('a list of symbols is counted as a hit where all of them are there, and has one answer', (t) => {
  const { streams, started, join, logged } = streamsAlone(t)
  const [a, b] = [join('a'), join('b')]
  streams.subscribeToTicks(a, ticks('A'))
  streams.subscribeToTicks(b, ticks('A', 'B'))
  t.same(logged(), [], 'one of them is new')
  t.ok(b.subscriptions.get('ticks A')?.list)
  t.equal(b.subscriptions.get('ticks A')?.list, b.subscriptions.get('ticks B')?.list)
  t.equal(a.subscriptions.get('ticks A')?.list, undefined)
  answer(started[0])
  t.same(logged(), ['a "m":1'], 'the list waits for its other symbol')
  answer(started[1])
  t.same(logged(), ['b "m":1', 'b "m":1'])
  streams.subscribeToTicks(join('c'), ticks('A', 'B'))
  t.same(logged(), ['hit ticks', 'c "m":1', 'c "m":1'])
  t.end()
})

await test('a history has a stream of its own for each of its kind, and the browser counts as waiting until it has it', (t) => {
  const { streams, started, join, logged } = streamsAlone(t)
  const a = join('a')
  streams.subscribeToHistory(a, history())
  t.same(logged(), ['a expects'])
  answer(started[0], { subscriptionId: 'id', body: Buffer.from('"m":1,"history":{"times":[1],"prices":[1]}}') })
  t.same(logged(), ['a "m":1', 'a arrived'])
  streams.subscribeToHistory(join('b'), history())
  t.notOk(logged().includes('b expects'), 'it is answered at once')
  for (const more of [
    { style: 'candles' },
    { style: 'candles', granularity: 60 },
    { style: 'candles', granularity: 120 },
    { style: 'ticks', granularity: 120 },
    { style: 'ticks' },
  ]) {
    streams.subscribeToHistory(join('c'), history(more))
  }
  t.same(
    started.map(({ spec }) => [spec.identity, spec.type]),
    [
      ['["history","ticks","A",null]', 'ticks'],
      ['["history","candles","A",60]', 'candles'],
      ['["history","candles","A",120]', 'candles'],
    ],
  )
  t.equal(started[0]?.spec.symbol, 'A')
  t.match(String(started[0]?.write(7)), '{"ticks_history":"A"')
  t.equal(a.lastNumber, 1)
  t.end()
})

await test('a browser that has a stream is told so once that is answered, and its request costs memory until then', async (t) => {
  const { streams, started, join, logged } = streamsAlone(t)
  const a = join('a')
  const request = ticks('A')
  streams.subscribeToTicks(a, request)
  streams.subscribeToTicks(a, request)
  t.same(logged(), [`a awaits ${request.memoryBytes}`])
  t.equal(a.subscriptions.get('ticks A')?.number, 1)
  answer(started[0])
  t.same(logged(), ['a "m":1', 'a answered', 'a subscribed to A'])
  streams.subscribeToTicks(a, ticks('B', 'A'))
  t.same(logged().slice(1), ['a answered', 'a subscribed to A'])
  t.equal(a.subscriptions.size, 1, 'nothing of the list is joined')
  streams.subscribeToHistory(a, history())
  logged()
  streams.subscribeToHistory(a, history())
  t.match(logged(), [/^a awaits/])
})

await test('where the earlier request is refused, or forgotten before its answer, the later one takes its turn with its number', async (t) => {
  const { streams, started, join, logged } = streamsAlone(t)
  const a = join('a')
  streams.subscribeToTicks(a, ticks('A'))
  streams.subscribeToTicks(a, ticks('A'))
  logged()
  answer(started[0], { errorCode: 'Unknown' })
  await Promise.resolve()
  t.same(logged(), ['a "m":1', 'a answered'])
  t.same([started.length, a.lastNumber, a.subscriptions.get('ticks A')?.number], [2, 2, 2])
  const b = join('b')
  b.forgetUnanswered(['ticks'], 1)
  streams.subscribeToTicks(b, ticks('B'))
  streams.subscribeToTicks(b, ticks('B'))
  logged()
  answer(started.at(-1))
  t.same(logged(), ['b "m":1', 'b answered', 'hit ticks', 'b "m":1'])
  t.equal(b.subscriptions.get('ticks B')?.number, 2)
  const c = join('c')
  streams.subscribeToHistory(c, history())
  streams.subscribeToHistory(c, history())
  logged()
  answer(started.at(-1), { errorCode: 'Unknown' })
  await Promise.resolve()
  t.equal(c.subscriptions.get('["history","ticks","A",null]')?.number, 2)
  t.equal(c.lastNumber, 2)
})

await test('a browser that is over subscribes to nothing', (t) => {
  const { streams, join, logged } = streamsAlone(t)
  const a = join('a')
  Object.assign(a.browser, { isOver: true })
  streams.subscribeToTicks(a, ticks('A'))
  streams.subscribeToHistory(a, history())
  t.same([streams.size, logged()], [0, []])
  t.end()
})

await test('a browser has so many subscriptions and no more, and starts streams as far as its share goes', (t) => {
  const { streams, world, join, logged } = streamsAlone(t, 3)
  const [a, b] = [join('a'), join('b')]
  streams.subscribeToTicks(a, ticks('A', 'B', 'C', 'D'))
  t.same([streams.size, logged()], [0, ['a RateLimit']])
  streams.subscribeToTicks(a, ticks('A', 'B'))
  t.equal(world.asked, 2)
  streams.subscribeToTicks(a, ticks('C'))
  t.same([world.asked, a.subscriptions.size, logged()], [1, 3, []])
  streams.subscribeToTicks(a, ticks('D'))
  t.same(logged(), ['a RateLimit'])
  world.admits = false
  streams.subscribeToTicks(b, ticks('D'))
  t.same(logged(), ['b RateLimit'])
  streams.subscribeToTicks(b, ticks('A'))
  t.same(logged(), ['hit ticks'], 'to join costs nothing')
  world.admits = true
  streams.subscribeToTicks(b, ticks('A', 'D'))
  t.equal(logged().length, 1, 'it has one of them')
  streams.subscribeToTicks(b, ticks('B', 'D'))
  t.same([world.asked, b.subscriptions.size], [1, 3])
  t.end()
})

await test('while more than half of the places are taken, an address may have started so many streams that are used', (t) => {
  const { streams, started, world, join, logged } = streamsAlone(t)
  const [a, b, other] = [join('a'), join('b'), join('other', '198.51.100.1')]
  world.taken = 50
  streams.subscribeToTicks(a, ticks('A', 'B'))
  streams.subscribeToTicks(b, ticks('C'))
  t.same([logged(), streams.size], [[], 3], 'half is not more than half')
  world.taken = 51
  streams.subscribeToTicks(a, ticks('D'))
  t.same(logged(), ['a RateLimit'])
  streams.subscribeToTicks(other, ticks('D', 'E'))
  t.same(logged(), [])
  streams.subscribeToTicks(other, ticks('F'))
  t.same(logged(), ['other RateLimit'])
  for (const stream of started.slice(0, 3)) answer(stream)
  logged()
  for (const each of [a, b]) each.leave()
  streams.subscribeToTicks(a, ticks('F', 'G'))
  t.same(logged(), [], 'what nobody uses does not count')
  world.admits = false
  world.taken = 0
  streams.subscribeToTicks(other, ticks('H'))
  t.same(logged(), ['other RateLimit'])
  t.end()
})

await test('without a place for its stream a request is refused, and a list as a whole', (t) => {
  const { streams, world, join, logged } = streamsAlone(t)
  const a = join('a')
  streams.subscribeToTicks(a, ticks('A'))
  world.hasPlace = false
  streams.subscribeToTicks(join('b'), ticks('B'))
  t.same([logged(), streams.size], [['b RateLimit'], 1])
  const c = join('c')
  streams.subscribeToTicks(c, ticks('A', 'B', 'C'))
  t.same([logged(), c.subscriptions.size], [['c RateLimit'], 0])
  streams.subscribeToHistory(c, history())
  t.same(logged(), ['c RateLimit'])
  t.end()
})

await test('a stream that has ended is started anew, and the end of an earlier one takes nothing from it', (t) => {
  const { streams, started, join, logged } = streamsAlone(t)
  streams.subscribeToTicks(join('a'), ticks('A'))
  answer(started[0], { errorCode: 'Unknown' })
  t.same([streams.size, streams.subscribers], [0, 0])
  streams.subscribeToTicks(join('b'), ticks('A'))
  t.same([started.length, streams.size], [2, 1])
  started[0]?.received(message({ errorCode: 'Unknown' }))
  logged()
  streams.subscribeToTicks(join('c'), ticks('A'))
  t.same([started.length, logged()], [2, ['hit ticks']])
  t.end()
})

await test('the refusal of a closed market answers equal requests for half a minute, each as it was asked', (t) => {
  const { streams, started, join, logged, world } = streamsAlone(t)
  let now = standstill.now()
  replace(t, standstill, 'now', () => now)
  streams.subscribeToTicks(join('a'), ticks('A'))
  answer(started[0], { errorCode: 'MarketIsClosed', body: Buffer.from('"error":{"code":"MarketIsClosed"}}') })
  logged()
  world.admits = false
  streams.subscribeToTicks(join('b'), ticks('A'))
  streams.subscribeToTicks(join('c'), ticks('B', 'A'))
  t.same([logged(), streams.size], [['b MarketIsClosed', 'c MarketIsClosed'], 0])
  world.admits = true
  streams.subscribeToHistory(join('d'), history())
  t.same(logged(), ['d expects'], 'another stream of the same market is another matter')
  now += 30_000
  streams.subscribeToTicks(join('e'), ticks('A'))
  t.same(logged(), ['e MarketIsClosed'])
  now += 1
  streams.subscribeToTicks(join('f'), ticks('A'))
  t.same([logged(), started.length], [[], 3])
  t.end()
})
