import { test } from 'tap'
import { Audience } from '../../src/sockets/feed/streams/audience.ts'
import type { Subscription } from '../../src/sockets/feed/streams/subscription.ts'
import { TickDelivery } from '../../src/sockets/feed/streams/tick-delivery.ts'
import type { UpstreamMessage } from '../../src/sockets/feed/wire/index.ts'

const SPEC = { identity: 'ticks A', type: 'ticks', symbol: 'A"', startedBy: 'network' } as const

const tick = (text: string): UpstreamMessage =>
  ({ body: Buffer.from(text), subscription: Buffer.from('part,') }) as unknown as UpstreamMessage

const note = (...frames: readonly Buffer[]): string => Buffer.concat(frames).subarray(2).toString()

/** Browsers whose outboxes note what they are given, without the header of the frames. */
function browsers() {
  const log: string[] = []
  const frames: Buffer[] = []
  const browse = (name: string, prefix = '{', list?: object): Subscription => {
    const outbox = {
      deliver: (frame: Buffer, identity: string) => (
        frames.push(frame),
        log.push(`${name} ${note(frame)} ${identity}`)
      ),
      answer: (...parts: Buffer[]) => log.push(`${name} answer ${note(...parts)}`),
    }
    return {
      browser: { outbox },
      prefix: Buffer.from(prefix),
      list,
      served: () => log.push(`${name} served`),
    } as unknown as Subscription
  }
  return { browse, frames, logged: () => log.splice(0) }
}

await test('a message goes to all of an audience, with what each message of theirs begins with, and is written once for all who begin alike', (t) => {
  const { browse, frames, logged } = browsers()
  const audience = new Audience('ticks A')
  const [a, b, c] = [browse('a'), browse('b'), browse('c', '{"id":1,')]
  for (const each of [a, b, c]) audience.add(each)
  audience.deliver(tick('1}'))
  t.same(logged(), ['a {part,1} ticks A', 'b {part,1} ticks A', 'c {"id":1,part,1} ticks A'])
  t.equal(frames[0], frames[1], 'the same bytes')
  audience.remove(a)
  audience.remove(a)
  audience.deliver(tick('2}'))
  t.same(logged(), ['b {part,2} ticks A', 'c {"id":1,part,2} ticks A'])
  audience.remove(b)
  audience.add(a)
  audience.deliver(tick('3}'))
  t.same(logged(), ['c {"id":1,part,3} ticks A', 'a {part,3} ticks A'])
  t.same(audience.clear(), [c, a])
  t.same(audience.clear(), [])
  audience.deliver(tick('4}'))
  t.same(logged(), [])
  audience.remove(c)
  t.end()
})

await test('prefixes that differ in any byte are told apart', (t) => {
  const { browse, logged } = browsers()
  const audience = new Audience('ticks A')
  audience.add(browse('a', '{"x":"\u00e9",'))
  audience.add(browse('b', '{"x":"\u00e8",'))
  audience.deliver(tick('1}'))
  t.same(logged(), ['a {"x":"\u00e9",part,1} ticks A', 'b {"x":"\u00e8",part,1} ticks A'])
  t.end()
})

await test('the first tick answers all who wait for it, and a later subscriber gets the newest at once', (t) => {
  const { browse, logged } = browsers()
  const delivery = new TickDelivery(SPEC)
  t.equal(delivery.write(3), '{"ticks":"A\\"","subscribe":1,"req_id":3}')
  for (const name of ['a', 'b']) delivery.join(browse(name))
  t.same(logged(), [])
  delivery.take(tick('1}'), true)
  t.same(logged(), ['a answer {part,1}', 'a served', 'b answer {part,1}', 'b served'])
  delivery.take(tick('2}'), false)
  t.same(logged(), ['a {part,2} ticks A', 'b {part,2} ticks A'])
  delivery.join(browse('c'))
  t.same(logged(), ['c answer {part,2}', 'c served'])
  delivery.take(tick('3}'), false)
  t.same(logged(), ['a {part,3} ticks A', 'b {part,3} ticks A', 'c {part,3} ticks A'])
  t.end()
})

await test('a tick that is not the first answers nobody whom a list makes wait', (t) => {
  const { browse, logged } = browsers()
  const delivery = new TickDelivery(SPEC)
  const sends: (() => void)[] = []
  const list = { arrived: (_each: unknown, send: () => void) => sends.push(send) }
  delivery.join(browse('a', '{', list))
  delivery.take(tick('1}'), true)
  t.same([logged(), sends.length], [[], 1])
  delivery.take(tick('2}'), false)
  t.same([logged(), sends.length], [[], 1])
  sends[0]?.()
  t.same(logged(), ['a answer {part,2}', 'a served'], 'the newest')
  sends[0]?.()
  t.same(logged(), [], 'once')
  delivery.join(browse('b', '{', list))
  t.equal(sends.length, 2)
  t.end()
})

await test('whoever leaves gets nothing more, and a stream that is lost lets all go', (t) => {
  const { browse, logged } = browsers()
  const delivery = new TickDelivery(SPEC)
  const sends: (() => void)[] = []
  const list = { arrived: (_each: unknown, send: () => void) => sends.push(send) }
  const [early, a, waiting] = [browse('early'), browse('a'), browse('waiting', '{', list)]
  for (const each of [early, a, waiting]) delivery.join(each)
  delivery.leave(early)
  delivery.take(tick('1}'), true)
  t.same(logged(), ['a answer {part,1}', 'a served'])
  t.same(delivery.detach(), [a, waiting])
  sends[0]?.()
  delivery.take(tick('2}'), true)
  t.same(logged(), [])
  t.same(delivery.detach(), [])
  const [b, c] = [browse('b'), browse('c')]
  delivery.join(b)
  t.same(logged(), [], 'what was lost is not the newest any more')
  delivery.take(tick('3}'), true)
  delivery.leave(b)
  delivery.join(c)
  logged()
  delivery.take(tick('4}'), false)
  t.same(logged(), ['c {part,4} ticks A'])
  t.end()
})
