import { test } from 'tap'
import type { Controls } from '../../src/controls/controls.ts'
import type { Session } from '../../src/sessions/index.ts'
import { orderGate } from '../../src/sockets/relay/order-gate.ts'

const SESSION = { id: 'id' } as Session
const message = (value: object) => Buffer.from(JSON.stringify(value))
const READ = message({ ticks: 'R_100' })
const SELL = message({ sell: 7, price: 1, req_id: 5 })
const BUY = message({ buy: 'proposal', price: 1, req_id: 6 })

/** The answer that a message gets. */
function answerIn(passage: ReturnType<ReturnType<typeof orderGate>['judge']>): unknown {
  return Buffer.isBuffer(passage) ? JSON.parse(passage.toString()) : passage
}

const stop = () => undefined
const listener = () => undefined

/** A gate, what the controls say, and what they count. */
function gateOf() {
  const world = { verdict: undefined as unknown, refusals: [] as unknown[], asked: [] as unknown[] }
  const identified = Promise.resolve()
  const controls = {
    verdictOn: (session: unknown) => (session === SESSION ? world.verdict : undefined),
    identify: (session: unknown) => {
      world.asked.push(session)
      return identified
    },
    metrics: { refusals: { inc: (labels: unknown) => world.refusals.push(labels) } },
    onPauseOf: (...args: unknown[]) => {
      world.asked.push(...args)
      return stop
    },
  } as unknown as Controls
  return { world, identified, gate: orderGate(controls, SESSION) }
}

await test('while orders go on, no message is looked at', (t) => {
  const { gate } = gateOf()
  t.equal(gate.isClosed, false)
  for (const each of [READ, SELL, BUY, Buffer.from('{')]) t.equal(gate.judge(each, false), 'passes')
  t.end()
})

await test('while they are paused, reads pass, closing where that is allowed, and nothing else', (t) => {
  for (const closing of [true, false]) {
    const { world, gate } = gateOf()
    world.verdict = { is: 'paused', closing, message: 'maintenance' }
    t.equal(gate.isClosed, true)
    t.equal(gate.judge(READ, false), 'passes')
    t.same(world.refusals, [])
    const sold = gate.judge(SELL, false)
    if (closing) t.equal(sold, 'passes')
    else t.match(answerIn(sold), { msg_type: 'sell', req_id: 5, error: { message: 'maintenance' } })
    t.match(answerIn(gate.judge(BUY, false)), { msg_type: 'buy', req_id: 6, error: { code: 'OrdersPaused' } })
    t.ok(gate.judge(READ, true) instanceof Buffer, 'a binary message is none that is known')
    t.equal(world.refusals.length, closing ? 2 : 3)
    t.same(world.refusals[0], { by: 'message' })
    t.same(world.asked, [])
  }
  t.end()
})

await test('while it is not known whose pause it is, all but reads wait for that', (t) => {
  const { world, gate, identified } = gateOf()
  world.verdict = { is: 'unidentified' }
  t.equal(gate.judge(READ, false), 'passes')
  for (const each of [SELL, BUY]) t.equal(gate.judge(each, false), identified)
  t.same(world.asked, [SESSION, SESSION])
  t.same(world.refusals, [])
  t.end()
})

await test('while the controls were never read, all but reads are refused, and no pause is counted', (t) => {
  const { world, gate } = gateOf()
  world.verdict = { is: 'unread' }
  t.equal(gate.isClosed, true)
  t.equal(gate.judge(READ, false), 'passes')
  for (const each of [SELL, BUY]) {
    t.match(answerIn(gate.judge(each, false)), {
      error: { code: 'OrdersPaused', message: 'Orders cannot be sent right now. Please try again in a moment.' },
    })
  }
  t.same([world.refusals, world.asked], [[], []])
  t.end()
})

await test('the gate tells when the user’s pause begins or changes', (t) => {
  const { world, gate } = gateOf()
  t.equal(gate.onClosed(listener), stop)
  t.same(world.asked, [SESSION, listener])
  t.end()
})
