import { test } from 'tap'
import { PATIENCE_MS } from '../../src/sockets/feed/upstream/index.ts'
import { message, refusal, SPREAD, streamAlone } from '../support/feed/stream-alone.ts'

const FAILED = 'browser fail prefix,part,body'
const ENDED = ['left false', 'ended true', 'link leave true']
const OVER = ['link forget 7 ', 'ended true', 'link leave true']

await test('a refused request is told to its browsers, with what each message of theirs begins with, and the stream ends', (t) => {
  const { stream, browse, logged } = streamAlone(t)
  browse()
  browse('other')
  stream.asked(7)
  logged()
  stream.received(refusal('Unknown'))
  t.same(logged(), ['detach true', FAILED, 'left false', 'other fail prefix,part,body', 'left false', ...OVER])
  t.equal(stream.phase, 'over')
  t.end()
})

await test('an error of a live stream concerns all who have it', (t) => {
  for (const code of ['Unknown', 'AlreadySubscribed', 'MarketIsClosed', 'RateLimit']) {
    const { stream, live, logged } = streamAlone(t)
    live()
    stream.received(refusal(code))
    const expected = ['detach false', FAILED, 'left false', 'link forget 7 id', 'ended true', 'link leave true']
    t.same(logged(), code === 'RateLimit' ? ['fair share', ...expected] : expected, code)
  }
  t.end()
})

await test('a market that is closed is noted, and closed for every request', (t) => {
  const { stream, browse, logged } = streamAlone(t)
  browse()
  stream.asked(7)
  logged()
  stream.received(refusal('MarketIsClosed'))
  t.same(logged(), ['closed true MarketIsClosed', 'detach false', FAILED, 'left false', ...OVER])
  t.end()
})

await test('where another request takes the place of a refused one, the stream begins again on its link', (t) => {
  const { stream, browse, world, logged } = streamAlone(t, true)
  browse()
  browse('other')
  world.detached = 1
  stream.asked(7)
  logged()
  stream.received(refusal('Unknown'))
  const again = ['link forget 7 ', 'link leave true', 'link add true']
  t.same(logged(), ['detach true', FAILED, 'left false', ...again])
  t.same([stream.phase, stream.size], ['unasked', 1])
  world.isReplaced = false
  stream.asked(8)
  logged()
  stream.received(refusal('Unknown'))
  t.same(logged().slice(3), ['link forget 8 ', 'ended true', 'link leave true'])
  t.end()
})

await test('a message that is too big closes the browsers, and the stream is forgotten upstream', (t) => {
  const { stream, browse, logged } = streamAlone(t)
  browse()
  stream.asked(7)
  logged()
  stream.tooBig(message({ subscriptionId: 'id' }))
  t.same(logged(), ['detach true', 'browser end true', 'link forget 7 id', 'ended true', 'link leave true'])
  const other = streamAlone(t)
  other.live()
  other.stream.tooBig(message())
  t.same(other.logged(), ['detach false', 'browser end true', 'link forget 7 id', 'ended true', 'link leave true'])
  t.end()
})

await test('a stream that was live is asked for again later when upstream limits requests, and a new one is refused', (t) => {
  const { stream, live, browse, logged } = streamAlone(t)
  live()
  stream.lost()
  browse()
  stream.asked(8)
  logged()
  stream.received(refusal('RateLimit'))
  t.same(logged(), [
    'fair share',
    'warn upstream refused to renew a subscription of the feed',
    'counted',
    'link forget 8 ',
    'link refused true',
  ])
  t.same([stream.phase, stream.size], ['unasked', 1])
  const fresh = streamAlone(t)
  fresh.browse()
  fresh.stream.asked(7)
  fresh.logged()
  fresh.stream.received(refusal('RateLimit'))
  t.same(fresh.logged(), ['fair share', 'detach true', FAILED, 'left false', ...OVER])
  t.end()
})

await test('a stream without browsers is renewed for as long as they may come back', (t) => {
  const { stream, live, world, logged } = streamAlone(t)
  live()
  stream.lost()
  world.now += SPREAD + PATIENCE_MS
  stream.asked(8)
  logged()
  stream.received(refusal('RateLimit'))
  t.equal(stream.phase, 'unasked')
  stream.asked(9)
  world.now += 1
  logged()
  stream.received(refusal('RateLimit'))
  t.same(logged().slice(1), ['counted', 'link forget 9 ', 'ended true', 'link leave true'])
  t.end()
})

await test('a stream moves to another connection at most twice before its browsers are told that upstream has it already', (t) => {
  const { stream, browse, logged } = streamAlone(t)
  browse()
  const refused = (reqId: number): unknown[] => {
    stream.asked(reqId)
    logged()
    stream.received(refusal('AlreadySubscribed'))
    return logged()
  }
  t.same(refused(7), ['link forget 7 ', 'link leave true', 'place true true'])
  t.equal(stream.phase, 'unasked')
  stream.asked(8)
  stream.received(message())
  t.same(logged(), ['take body true', 'link answered true'])
  stream.lost()
  browse()
  t.same(refused(9).length, 3, 'an answer begins the count again')
  t.same(refused(10).length, 3)
  t.same(refused(11), ['detach true', FAILED, 'left false', 'link forget 11 ', 'ended true', 'link leave true'])
  t.end()
})

await test('a stream that has no place elsewhere, or no browsers, does not move', (t) => {
  const { stream, browse, world, logged } = streamAlone(t)
  browse()
  world.places = false
  stream.asked(7)
  logged()
  stream.received(refusal('AlreadySubscribed'))
  t.same(logged().slice(2), ['place true true', 'detach false', FAILED, ...ENDED])
  const empty = streamAlone(t)
  const each = empty.browse()
  empty.stream.asked(7)
  empty.stream.leave(each)
  empty.logged()
  empty.stream.received(refusal('AlreadySubscribed'))
  t.same(empty.logged(), ['detach true', ...OVER])
  t.end()
})
