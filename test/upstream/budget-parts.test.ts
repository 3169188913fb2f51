import { once } from 'node:events'
import { test } from 'tap'
import { Demand } from '../../src/upstream/budget/demand.ts'
import { PresentSubjects } from '../../src/upstream/budget/subject-calls.ts'
import { LedgerModel } from '../support/budget/ledger-model.ts'
import { ManualBudget } from '../support/budget/manual-budget.ts'
import { replace } from '../support/time/replace.ts'

const WINDOW = [{ calls: 100, windowMs: 10_000 }]

await test('most calls wait for no report, and a report brings the tokens of several seconds', async (t) => {
  const world = await ManualBudget.opened({ windows: [{ calls: 3000, windowMs: 60_000 }] })
  let sent = 0
  for (let tick = 0; tick < 600; tick++) {
    if (await world.send('reads')) sent++
    await world.pass(50)
  }
  t.equal(sent, 600)
  t.ok(world.reports.length <= 0.05 * 600, `${world.reports.length} reports for 600 calls at 20 a second`)
})

await test('an order finds a token at hand, without a report', async (t) => {
  const world = await ManualBudget.opened()
  t.notOk(world.budget.admit('orders', 'a') instanceof Promise)
  await world.pass(60_000)
  t.notOk(world.budget.admit('orders', 'a') instanceof Promise, 'also after a minute without calls')
})

for (const [how, stop] of [
  ['was stopped', (world: ManualBudget) => world.stop(5001)],
  ['slept with its machine', (world: ManualBudget) => world.sleep(5001)],
] as const) {
  await test(`a token is worth nothing to a process that ${how} for longer than its lease`, async (t) => {
    const world = await ManualBudget.opened()
    const reservation = await world.reserve('orders')
    world.isAway = true
    stop(world)
    t.match(reservation?.start(), { is: 'refused', limited: 'all' }, 'the call may not be written')
    reservation?.end()
  })
}

await test('a process whose timers are late sets none for a time that has passed', async (t) => {
  const world = await ManualBudget.opened()
  await world.pass(2000)
  // The timer is due in a second, and so is the next report shortly after it.
  world.stop(1500)
  await world.pass(0)
  await world.pass(2000)
  t.ok(await world.send('orders'))
})

await test('a request that is written twice spends two tokens', async (t) => {
  const world = await ManualBudget.opened({ windows: [{ calls: 4, windowMs: 10_000 }] })
  const first = await world.reserve('orders')
  const second = await world.reserve('orders')
  await world.pass(0)
  t.same([first?.start(), second?.start()], [undefined, undefined])
  t.ok(await world.send('orders'))
  first?.end()
  const last = await world.reserve('orders')
  t.equal(last?.start(), undefined)
  t.match(last?.start(), { is: 'refused', limited: 'all' }, 'none is left for the second time')
})

await test('a call that waits for tokens is not written when upstream refuses its user meanwhile', async (t) => {
  const world = await ManualBudget.opened()
  const first = await world.reserve('reads', 'a')
  const { promise, resolve } = Promise.withResolvers<void>()
  world.replies = promise
  // One of these finds the last token at hand, if there is one.
  const calls = Array.from({ length: 5 }, () => world.admit('reads', 'a'))
  const waiting = calls.at(-1)
  t.ok(waiting instanceof Promise, 'no token is at hand')
  first?.answered(429, '7')
  resolve()
  const admission = await waiting
  const refused = admission?.is === 'granted' ? admission.reservation.start() : admission
  t.match(refused, { is: 'refused', limited: 'user', retryAfterMs: 7000 })
})

await test('a session that was alone may have used everything, and gets no more than half of what comes when another asks', async (t) => {
  const world = await ManualBudget.opened({ windows: [{ calls: 80, windowMs: 10_000 }] })
  t.equal(await world.sendMany(100, 'reads', 'greedy'), 40, 'alone it may have all')
  t.equal(await world.sendMany(1, 'reads', 'modest'), 0, 'another goes short')
  let greedy = 0
  let modest = 0
  for (let second = 0; second < 120; second++) {
    greedy += await world.sendMany(10, 'reads', 'greedy')
    modest += await world.sendMany(1, 'reads', 'modest')
    await world.pass(1000)
  }
  t.ok(modest >= 45, `then the other gets ${modest} of 120 calls`)
  t.ok(greedy > modest && greedy <= 12 * 20, `and the first ${greedy} of 1,200`)
})

await test('one of seven sessions that all want more than there is gets less than a third, in whatever portions the tokens come', async (t) => {
  const world = await ManualBudget.opened({ windows: [{ calls: 60, windowMs: 10_000 }] })
  let greedy = 0
  let others = 0
  for (let tenth = 0; tenth < 1200; tenth++) {
    // The greedy one asks ten times a second and is always there first, each of the others once.
    const isSent = await world.send('reads', 'greedy')
    const isOther = tenth % 10 < 6 && (await world.send('reads', `modest ${tenth % 10}`))
    if (tenth >= 200) {
      greedy += Number(isSent)
      others += Number(isOther)
    }
    await world.pass(100)
  }
  t.ok(greedy <= (greedy + others) * 0.3, `${greedy} of ${greedy + others} calls`)
  t.ok(greedy + others >= 240, `${greedy + others} of 300 calls are made`)
})

/** Sessions that send thirty calls at once ten times a second, and others that send one twice a second: what they can send. */
async function crowd(greedy: readonly string[], modest: number): Promise<{ greedy: number; others: number }> {
  const world = await ManualBudget.opened({ windows: [{ calls: 60, windowMs: 10_000 }] })
  const sent = { greedy: 0, others: 0 }
  for (let tenth = 0; tenth < 1200; tenth++) {
    const send = async (subject: string, kind: 'greedy' | 'others'): Promise<void> => {
      if ((await world.send('reads', subject)) && tenth >= 200) sent[kind]++
    }
    const calls = greedy.flatMap((subject) => Array.from({ length: 30 }, () => send(subject, 'greedy')))
    if (tenth % 5 < modest) calls.push(send(`modest ${tenth % 5}`, 'others'))
    await Promise.all(calls)
    await world.pass(100)
  }
  return sent
}

await test('a session with many calls at once leaves half of the tokens and more to those that come one by one', async (t) => {
  const { greedy, others } = await crowd(['greedy'], 5)
  t.ok(greedy <= (greedy + others) * 0.4, `${greedy} of ${greedy + others} calls`)
  t.ok(greedy + others >= 240, `${greedy + others} of 300 calls are made`)
})

await test('two sessions with many calls at once keep nothing from each other', async (t) => {
  const { greedy } = await crowd(['one', 'two'], 0)
  t.ok(greedy >= 240, `${greedy} of 300 calls are made`)
})

await test('one who sends an order a second is never refused, although all tokens come once a minute and another takes all it can', async (t) => {
  const world = await ManualBudget.opened({ windows: [{ calls: 300, windowMs: 60_000 }] })
  let greedy = 0
  let modest = 0
  for (let second = 0; second < 360; second++) {
    const sent = await Promise.all([
      ...Array.from({ length: 100 }, () => world.send('orders', 'greedy')),
      world.send('orders', 'modest'),
    ])
    if (second >= 60) {
      greedy += sent.slice(0, -1).filter(Boolean).length
      modest += Number(sent.at(-1))
    }
    await world.pass(1000)
  }
  t.equal(modest, 300)
  t.ok(greedy <= 750, `${greedy} of the 1,500 tokens, half at most`)
  t.ok(greedy >= 700, 'and not much less')
})

await test('before another has gone short, a session is held to half of the tokens, and only until it is alone again', async (t) => {
  const world = await ManualBudget.opened({ windows: [{ calls: 80, windowMs: 10_000 }] })
  t.ok(await world.send('reads', 'modest'))
  t.equal(
    await world.sendMany(60, 'reads', 'greedy'),
    10,
    'a quarter of 40: how fast calls of the other come is not known',
  )
  await world.pass(2500)
  t.equal(await world.sendMany(60, 'reads', 'greedy'), 10, 'half of 40')
  t.equal(await world.sendMany(19, 'reads', 'modest'), 19, 'the other finds its half')
  await world.pass(12_000)
  t.equal(await world.sendMany(60, 'reads', 'greedy'), 40, 'the other has not asked for a while')
})

await test('a session that was alone and used most of a longer window gets more of it, although others have come', async (t) => {
  const windows = [
    { calls: 100, windowMs: 10_000 },
    { calls: 400, windowMs: 100_000 },
  ]
  const world = await ManualBudget.opened({ windows })
  for (const alone of [90, 90, 90]) {
    t.equal(await world.sendMany(90, 'orders', 'greedy'), alone)
    await world.pass(12_000)
  }
  t.ok(await world.send('orders', 'modest'))
  await world.pass(3000)
  const sent = await world.sendMany(90, 'orders', 'greedy')
  t.ok(sent >= 10, `${sent} of 130 that are left`)
})

await test('one of three instances has all the traffic: a session beside others gets half of all tokens', async (t) => {
  const world = await ManualBudget.opened({ windows: [{ calls: 300, windowMs: 60_000 }], instances: 3 })
  let sent = 0
  for (let turn = 0; turn < 6; turn++) {
    await world.send('orders', 'modest')
    sent += await world.sendMany(60, 'orders', 'greedy')
    await world.pass(10_000)
  }
  t.ok(sent >= 120 && sent <= 150, `${sent} of 300`)
})

await test('a session that asks for calls of another class is another, too', async (t) => {
  const world = await ManualBudget.opened({ windows: [{ calls: 80, windowMs: 10_000 }] })
  t.ok(await world.send('reads', 'modest'))
  t.ok((await world.sendMany(90, 'orders', 'greedy')) <= 40)
})

await test('all sessions that use more than an equal part stay together within half of the tokens', async (t) => {
  const world = await ManualBudget.opened({ windows: [{ calls: 400, windowMs: 10_000 }] })
  for (let each = 0; each < 40; each++) t.ok(await world.send('reads', `modest ${each}`))
  await world.pass(9000)
  const first = await world.sendMany(100, 'reads', 'greedy')
  t.ok(first > 80 && first <= 100, `${first} of 200`)
  for (let each = 0; each < 4; each++) {
    const sent = await world.sendMany(100, 'reads', `as greedy ${each}`)
    t.ok(sent <= 9, `no more than an equal part, with room for chance: ${sent}`)
  }
})

await test('100,000 sessions with a call each leave no trace of more than a few', async (t) => {
  const present = new PresentSubjects({ now: () => 0, timeOfDay: () => 0, after: () => () => undefined }, 60_000)
  for (let each = 0; each < 100_000; each++) present.note(`session ${each}`)
  t.equal(present.count, 1024)
  t.end()
})

await test('sessions that wait at the same time take turns', async (t) => {
  const world = new ManualBudget({ windows: [{ calls: 40, windowMs: 10_000 }] })
  const calls = [...Array<string>(20).fill('greedy'), ...Array<string>(4).fill('modest')].map((subject) =>
    world.send('reads', subject).then((isSent) => (isSent ? subject : '')),
  )
  const sent = await Promise.all(calls)
  t.equal(sent.filter((subject) => subject === 'modest').length, 4, 'the one that came last gets its four')
  t.equal(sent.filter((subject) => subject === 'greedy').length, 4, 'and the first a quarter, beside what is reserved')
})

await test('a session whose calls all wait keeps no other session from waiting', async (t) => {
  const world = new ManualBudget({})
  const { promise, resolve } = Promise.withResolvers<void>()
  world.replies = promise
  const greedy = Array.from({ length: 2000 }, () => world.budget.admit('otps', 'greedy'))
  t.equal(greedy.filter((admission) => admission instanceof Promise).length, 128, 'more than it has in progress')
  const modest = world.budget.admit('otps', 'modest')
  t.ok(modest instanceof Promise, 'the other may wait')
  resolve()
  t.match(await modest, { is: 'granted' }, 'and gets its turn')
})

await test('tokens that nobody spends go back, and a process that closes returns its own', async (t) => {
  const book = new LedgerModel()
  const [one, two] = [0, 1].map(() => new ManualBudget({ windows: WINDOW, instances: 2 }, book)) as [
    ManualBudget,
    ManualBudget,
  ]
  await one.budget.opened()
  await two.budget.opened()
  const orders = await two.sendMany(120, 'orders')
  t.ok(orders >= 96 && orders < 100, `${orders} of 100, while another holds a few ready`)
  await one.budget.close()
  await two.pass(7000)
  t.equal(orders + (await two.sendMany(20, 'orders')), 100)
})

await test('a report that fails unexpectedly is not the last one', async (t) => {
  const world = new ManualBudget({})
  await t.test('a fault of this server', async (failing) => {
    replace(failing, Demand.prototype, 'wanted', () => {
      throw new Error('planted')
    })
    const rejected = once(process, 'unhandledRejection')
    void world.budget.admit('reads', 'a')
    failing.match(await rejected, [/planted/])
  })
  t.ok(await world.send('reads', 'b'))
})
