import { setImmediate as nextTurn } from 'node:timers/promises'
import { test } from 'tap'
import { SharedState } from '../../src/store/shared-state.ts'
import { standstill } from '../../src/time/standstill.ts'
import { COUNT, KEPT, Paper, shared } from '../support/controls/paper.ts'

const unlessSecret = (text: string): number | undefined => (text === 'secret' ? undefined : Number(text))
const add = (count: number): number => count + 1

await test('a change is made to what the store has, and another instance reads it', async (t) => {
  const paper = new Paper()
  paper.put('41')
  const { state } = shared(paper)
  t.match(await state.change(add), { state: 42, now: 5000, isRead: true, isShared: true, cause: undefined })
  t.same([paper.writes, paper.ttlMs, state.version], [['42'], 1000, 'vv'])
  const { state: other } = shared(paper)
  t.equal(other.version, undefined)
  t.ok(other.isReadable)
  t.ok(Math.abs(other.now - Date.now()) < 1000, 'the clock here, until that of the store is known')
  t.match(await other.read(), { state: 42, isRead: true, isShared: true })
  t.equal(other.version, 'vv')
  t.match(await other.read(), { state: 42 })
  t.same(paper.reads.slice(1), [undefined, 'vv'], 'the text that is known is not asked for again')
  t.equal(paper.writes.length, 1, 'reading writes nothing')
})

await test('changes of the same moment share a read and a write, and those that come meanwhile share the next', async (t) => {
  const paper = new Paper()
  const { state, news } = shared(paper)
  let later: Promise<unknown> | undefined
  paper.before = () => {
    later ??= Promise.all([state.change(add), state.change(add)])
  }
  await Promise.all([state.change(add), state.change(add)])
  await later
  t.same(paper.writes, ['2', '4'])
  t.equal(paper.reads.length, 2)
  t.equal(news.count, 2)
  t.equal(state.current, 4)
})

await test('a change is made again to what a faster instance has written, 20 times at most', async (t) => {
  const paper = new Paper()
  const { state } = shared(paper)
  let faster = 2
  const overtake = (): void => {
    if (paper.writes.length > 0 && faster-- > 0) paper.put('10')
  }
  paper.before = overtake
  t.match(await state.change(add), { state: 11, isShared: true })
  faster = Infinity
  paper.writes = []
  t.match(await state.change(add), { state: 11, isRead: true, isShared: false, cause: undefined })
  t.equal(paper.writes.length, 20)
})

await test('without a document a process is alone, and with one it reads what is there', async (t) => {
  let news = 0
  const state = new SharedState<number>(COUNT, () => news++)
  state.reread()
  await nextTurn()
  t.equal(news, 0)
  t.match(await state.change(add), { state: 1, isRead: false, isShared: false, cause: undefined })
  const paper = new Paper()
  for (const text of ['7', '8']) {
    paper.put(text)
    if (text === '7') state.share(paper.open())
    else state.reread()
    await nextTurn()
    t.equal(state.current, Number(text))
  }
  state.reread()
  t.match(await state.read(), { state: 8 })
  t.equal(paper.reads.length, 3, 'who asks at the same moment shares a read')
  await state.close()
  t.ok(paper.isClosed)
})

await test('while the store is away a change counts here, and later also there if the state is kept up', async (t) => {
  for (const [form, expected] of [
    [COUNT, 0],
    [KEPT, 1],
  ] as const) {
    const paper = new Paper()
    const { state } = shared(paper, form)
    await state.read()
    paper.isAway = true
    t.match(await state.change(add), { state: 1, isRead: false, isShared: false, cause: { message: 'away' } })
    t.equal(state.current, 1)
    paper.isAway = false
    paper.put('0')
    paper.writes = []
    t.match(await state.read(), { state: expected, isShared: true })
    t.same(paper.writes, expected === 1 ? ['1'] : [])
    paper.writes = []
    await state.read()
    t.same(paper.writes, [], 'once')
  }
})

await test('a state that is kept up is written again if the store has lost it, or may not have all of it on its replicas', async (t) => {
  const paper = new Paper()
  paper.put('1')
  const { state } = shared(paper, { ...KEPT, parse: (text) => (text === '' ? undefined : Number(text)) })
  await state.read()
  t.same(paper.writes, [], 'the store has it')
  paper.put('0')
  await state.read()
  t.same(paper.writes, ['1'])
  paper.isAway = true
  await state.change(add)
  paper.isAway = false
  paper.put('2')
  await state.read()
  t.same(paper.writes, ['1', '2'], 'another instance has written the same')
  paper.put('')
  t.match(await state.read(), { state: 2, isShared: true })
  t.ok(state.isReadable, 'nothing is no text that cannot be read')
})

await test('a state that is kept up is written where the store has none, or has it in an outdated form', async (t) => {
  const paper = new Paper()
  const { state } = shared(paper, { ...KEPT, upkeep: { ...KEPT.upkeep, isOutdated: (version) => version === 'v' } })
  await state.read()
  t.equal(paper.version, 'v', 'there was none')
  await state.read()
  t.equal(paper.version, 'vv')
  await state.read()
  t.equal(paper.version, 'vv')
})

await test('a text that cannot be read is never replaced, and is read again each time', async (t) => {
  const paper = new Paper()
  paper.put('secret')
  const { state } = shared(paper, { ...KEPT, parse: unlessSecret })
  t.match(await state.change(add), { state: 1, isRead: true, isShared: false })
  t.notOk(state.isReadable)
  const askedAt = standstill.now()
  paper.before = () => {
    while (standstill.now() < askedAt + 10);
  }
  await state.read()
  t.ok(state.knownAt < askedAt + 10, 'what was changed while it was read is not known')
  t.same([paper.reads, paper.writes], [[undefined, undefined], []])
  paper.put('5')
  t.match(await state.read(), { state: 5, isShared: true })
  t.ok(state.isReadable)
})

await test('a text that cannot be read is replaced by a change that may do so, unless it changes nothing', async (t) => {
  const paper = new Paper()
  paper.put('secret')
  const { state } = shared(paper, { ...KEPT, parse: unlessSecret })
  const nothing = state.change((count) => count, true)
  t.match(await state.change(add), { state: 1, isShared: false })
  t.match(await nothing, { isShared: false })
  let isFirst = true
  paper.before = () => {
    if (paper.reads.length === 2 && isFirst) paper.put('secret')
    isFirst = paper.reads.length < 2
  }
  t.match(await state.change(add, true), { state: Number, isShared: true })
  t.ok(state.isReadable)
  await state.read()
  t.equal(paper.text, String(state.current))
  paper.put('secret')
  await state.read()
  t.notOk(state.isReadable)
  t.match(await state.change(add), { isShared: false }, 'once')
  t.equal(paper.text, 'secret')
})

await test('a change that counts at once does so before the store was asked', async (t) => {
  const paper = new Paper()
  paper.put('10')
  const seen: number[] = []
  const form = { ...COUNT, isAtOnce: true }
  const state: SharedState<number> = new SharedState<number>(form, () => seen.push(state.current), paper.open())
  paper.before = () => {
    paper.before = () => undefined
    void state.change(add)
  }
  const changed = state.change(add)
  await changed
  await state.read()
  t.same(seen, [1, 2, 12, 12, 12], 'what waits counts on top of what was read')
  const { state: patient } = shared(new Paper())
  void patient.change(add)
  t.equal(patient.current, 0)
})
