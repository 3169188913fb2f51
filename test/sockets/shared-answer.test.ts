import { test, type Test } from 'tap'
import { CLOSE } from '../../src/sockets/close-codes.ts'
import { CacheQuota, SharedAnswer } from '../../src/sockets/feed/streams/shared-answer.ts'
import type { AnswerFrame, FeedRequest, UpstreamMessage } from '../../src/sockets/feed/wire/index.ts'
import { ManualTimers } from '../support/time/manual-timers.ts'
import { replace } from '../support/time/replace.ts'

const KEPT = 16 * 1_048_576
const REQUEST = { memoryBytes: 1000 } as FeedRequest

/** An answer that is asked for, a second of which browsers wait for it, and what it has done. */
function answerOf(t: Test, keepMs = 5000) {
  const timers = new ManualTimers(t)
  const world = { now: 100, log: [] as unknown[] }
  replace(t, performance, 'now', () => world.now)
  const log = (...entry: unknown[]): void => void world.log.push(entry)
  const context = {
    oneShots: {
      ask: (write: unknown, listener: unknown) => log('ask', write, listener === answer),
      outage: { depart: (browser: unknown) => log('depart', browser) },
      connection: { release: (id: number) => log('release', id) },
    },
    fairShare: { refused: () => log('refused') },
    kept: new CacheQuota(),
  } as unknown as ConstructorParameters<typeof SharedAnswer>[2]
  const owner = {
    staleMs: 1000,
    answered: (_: unknown, message: UpstreamMessage) => log('answered', message),
    lost: (waiter: unknown) => log('lost', waiter),
    letGo: (given: unknown) => log('let go', given === answer),
  }
  const answer = new SharedAnswer(REQUEST, keepMs, context, owner)
  const waiter = (isOver = false) => {
    const browser = { outbox: 'outbox', isOver, end: (close: unknown) => log('end', close) } as never
    const each = { browser, prefix: Buffer.from('prefix') }
    answer.waiting.add(each)
    return each
  }
  const frame = { bytes: 234, send: (...args: unknown[]) => log('send', ...args) } as unknown as AnswerFrame
  return { answer, waiter, frame, timers, world, context, logged: () => world.log.splice(0) }
}

const states = ({ isStale, isShared, isUsed }: ReturnType<typeof answerOf>['answer']) => [isStale, isShared, isUsed]

await test('a quota keeps what there is room for, for its time, and nothing for no time', (t) => {
  const timers = new ManualTimers(t)
  const quota = new CacheQuota()
  const over: string[] = []
  t.equal(
    quota.keep(1, 0, () => over.push('none')),
    false,
  )
  t.equal(
    quota.keep(KEPT - 1, 500, () => over.push('large')),
    true,
  )
  t.equal(
    quota.keep(2, 700, () => over.push('too large')),
    false,
  )
  t.equal(
    quota.keep(1, 700, () => over.push('small')),
    true,
  )
  t.same(timers.delays, [500, 700])
  t.equal(
    quota.keep(1, 700, () => over.push('full')),
    false,
  )
  timers.run()
  t.same(over, ['large', 'small'])
  t.equal(
    quota.keep(KEPT, 500, () => over.push('again')),
    true,
  )
  t.end()
})

await test('an answer is shared while it is awaited, for a time, and it is given up once nobody waits for it', (t) => {
  const { answer, waiter, world, logged } = answerOf(t)
  answer.ask('write' as never)
  t.same(logged(), [['ask', 'write', true]])
  t.same(states(answer), [false, true, true])
  t.equal(answer.isAnsweredOnce, true)
  world.now += 999
  answer.beat(7)
  t.same([states(answer), logged()], [[false, true, true], []])
  world.now += 1
  t.same(states(answer), [true, false, true])
  const there = waiter()
  waiter(true)
  answer.beat(7)
  t.same([[...answer.waiting], logged()], [[there], []], 'a late answer still reaches whoever waits')
  t.equal(answer.isUsed, true)
  answer.waiting.clear()
  answer.beat(7)
  t.same(logged(), [
    ['release', 7],
    ['let go', true],
  ])
  t.same(states(answer), [false, false, false])
  t.end()
})

await test('an answer that has come is sent with the prefix of each browser, and kept for others for its time', (t) => {
  const { answer, waiter, frame, timers, logged, world } = answerOf(t)
  const first = waiter()
  t.equal(answer.send(first), false)
  t.same(logged(), [])
  answer.take(frame)
  t.equal(answer.send(first), true)
  t.same(logged(), [['send', 'outbox', first.prefix]])
  t.same(answer.takeWaiting(), [first])
  t.same(answer.takeWaiting(), [])
  answer.keep()
  world.now += 1_000_000
  t.same([timers.delays, states(answer), logged()], [[5000], [false, true, true], []])
  timers.run()
  t.same([states(answer), logged()], [[false, false, false], [['let go', true]]])
  t.equal(answer.send(first), false)
  answer.keep()
  t.same(timers.delays, [5000], 'without a frame only the request counts')
  const last = waiter()
  t.equal(answer.isUsed, true, 'somebody waits')
  t.same(answer.takeWaiting(), [last])
  t.end()
})

await test('an answer for which there is no room, or no time, is given to nobody else', (t) => {
  for (const [keepMs, usedBytes, isKept] of [
    [0, 0, false],
    [5000, KEPT - 1234, true],
    [5000, KEPT - 1233, false],
  ] as const) {
    const { answer, frame, context, logged } = answerOf(t, keepMs)
    if (usedBytes > 0) context.kept.keep(usedBytes, 5000, () => undefined)
    answer.take(frame)
    answer.keep()
    t.equal(answer.isShared, isKept)
    t.same(logged(), isKept ? [] : [['let go', true]])
  }
  t.end()
})

await test('a refusal by the rate limit counts for all browsers, and every message goes to the owner', (t) => {
  const { answer, logged } = answerOf(t)
  for (const errorCode of ['RateLimit', 'MarketClosed', undefined]) {
    const message = { errorCode } as UpstreamMessage
    answer.received(message)
    t.same(logged(), [...(errorCode === 'RateLimit' ? [['refused']] : []), ['answered', message]])
  }
  t.end()
})

await test('an answer that is too big ends its browsers, and one that is lost has them depart', (t) => {
  for (const how of ['tooBig', 'lost'] as const) {
    const { answer, waiter, logged } = answerOf(t)
    const [one, two] = [waiter(), waiter()]
    answer[how]()
    const told = (each: typeof one) => (how === 'lost' ? ['depart', each.browser] : ['end', CLOSE.tooBig])
    t.same(logged(), [['let go', true], told(one), ['lost', one], told(two), ['lost', two]])
    t.same([answer.waiting.size, answer.isUsed], [0, false])
  }
  t.end()
})
