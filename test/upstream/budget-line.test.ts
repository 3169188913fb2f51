import { test } from 'tap'
import { WaitingLine } from '../../src/upstream/budget/waiting-line.ts'

const CLOCK = { now: () => 0, timeOfDay: () => 0, after: () => () => undefined }

await test('calls that wait are served in turns, one of each user', async (t) => {
  const line = new WaitingLine(CLOCK)
  const served: string[] = []
  const wait = (subject: string, name: string) =>
    void line.wait(subject).then((token) => served.push(`${name} ${token === undefined ? 'refused' : 'served'}`))
  for (const name of ['a1', 'a2', 'a3', 'b1']) wait(name.slice(0, 1), name)
  t.equal(line.length, 4)
  t.equal(
    line.count(() => 2),
    3,
  )
  t.equal(
    line.count((subject) => (subject === 'a' ? -1 : 5)),
    1,
  )
  let tokens = 3
  line.serve(() => (tokens-- > 0 ? { spend: () => true, release: () => undefined } : undefined))
  await Promise.resolve()
  t.same(served, ['a1 served', 'b1 served', 'a2 served'])
  t.equal(line.length, 1)
  wait('c', 'c1')
  line.dismiss((subject) => subject === 'c')
  await Promise.resolve()
  t.equal(line.length, 1)
  line.dismiss()
  await Promise.resolve()
  t.same(served.slice(3), ['c1 refused', 'a3 refused'])
  t.equal(line.length, 0)
  t.equal(
    line.count(() => 9),
    0,
  )
})

await test('a line has room for 1,024 calls, and for 128 of one user', (t) => {
  const line = new WaitingLine(CLOCK)
  for (let count = 0; count < 128; count++) {
    t.equal(line.hasRoomFor('greedy'), true)
    void line.wait('greedy')
  }
  t.equal(line.hasRoomFor('greedy'), false)
  for (let count = 128; count < 1024; count++) {
    t.equal(line.hasRoomFor(`user ${count}`), true)
    void line.wait(`user ${count}`)
  }
  t.equal(line.hasRoomFor('another'), false)
  t.end()
})

await test('a line knows for how long the ledger has nothing for it', (t) => {
  let now = 0
  const line = new WaitingLine({ ...CLOCK, now: () => now })
  t.equal(line.emptyUntil, -Infinity)
  now = 100
  line.noteReply(50)
  t.equal(line.emptyUntil, 150)
  t.equal(line.emptyMs, 50)
  now = 160
  t.equal(line.emptyMs, -10)
  line.noteReply(0)
  t.equal(line.emptyMs, -Infinity)
  t.end()
})
