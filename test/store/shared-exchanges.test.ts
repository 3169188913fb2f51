import { test, type Test } from 'tap'
import type { DocumentReading, SharedDocument } from '../../src/store/shared-document.ts'
import { SharedState } from '../../src/store/shared-state.ts'
import { standstill } from '../../src/time/standstill.ts'

/** The text that all instances of a test write, and who asks for it. */
class Paper {
  version = ''
  text = ''
  now = 5000
  reads: (string | undefined)[] = []
  writes: string[] = []
  ttlMs: number | undefined
  isAway = false
  isClosed = false
  /** Called before each read is answered, and before each write. */
  before: () => void = () => undefined

  put(text: string): void {
    this.text = text
    this.version += 'v'
  }

  /** The document, as an instance opens it. */
  open(): SharedDocument {
    return {
      read: async (known): Promise<DocumentReading> => {
        this.reads.push(known)
        this.before()
        if (this.isAway) throw new Error('away')
        const text = known !== undefined && known !== '' && known === this.version ? undefined : this.text
        return { version: this.version, text, now: this.now }
      },
      write: async (version, text, ttlMs) => {
        this.ttlMs = ttlMs
        this.writes.push(text)
        this.before()
        if (version !== this.version) return undefined
        this.put(text)
        return this.version
      },
      close: () => (this.isClosed = true),
    }
  }
}

const COUNT = { nothing: 0, parse: Number, format: String, ttlMs: 1000 }
const unlessSecret = (text: string): number | undefined => (text === 'secret' ? undefined : Number(text))
const add = (count: number): number => count + 1

/** The greater count of two counts. An instance writes again what it has and the store has lost, or what is not of today. */
const KEPT = {
  ...COUNT,
  upkeep: { merge: (own: number, read: number) => Math.max(own, read), isOutdated: () => false },
}

function shared(paper: Paper, form: ConstructorParameters<typeof SharedState<number>>[0] = COUNT) {
  const news = { count: 0 }
  return { state: new SharedState<number>(form, () => news.count++, paper.open()), news }
}

await test('a change is made to what the store has, and another instance reads it', async (t) => {
  const paper = new Paper()
  paper.put('41')
  const { state } = shared(paper)
  t.match(await state.change(add), { state: 42, now: 5000, isRead: true, isShared: true, cause: undefined })
  t.same([paper.writes, paper.ttlMs, state.version], [['42'], 1000, 'vv'])
  const { state: other } = shared(paper)
  t.equal(other.version, undefined)
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
  const state = new SharedState<number>(COUNT, () => undefined)
  state.reread()
  t.match(await state.change(add), { state: 1, isRead: false, isShared: false, cause: undefined })
  const paper = new Paper()
  paper.put('7')
  state.share(paper.open())
  t.match(await state.read(), { state: 7, isRead: true })
  paper.put('8')
  state.reread()
  t.match(await state.read(), { state: 8 })
  t.equal(paper.reads.length, 2, 'who asks at the same moment shares a read')
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
  await state.read()
  t.same([paper.reads, paper.writes], [[undefined, undefined], []])
  paper.put('5')
  t.match(await state.read(), { state: 5, isShared: true })
  t.ok(state.isReadable)
})

await test('a change that counts at once does so before the store was asked', async (t) => {
  const paper = new Paper()
  paper.put('10')
  const { state, news } = shared(paper, { ...COUNT, isAtOnce: true })
  const changed = state.change(add)
  t.same([state.current, news.count], [1, 1])
  paper.before = () => {
    paper.before = () => undefined
    void state.change(add)
  }
  await changed
  t.equal(state.current, 12, 'what waits counts on top of what was read')
  const { state: patient } = shared(new Paper())
  void patient.change(add)
  t.equal(patient.current, 0)
})

/** Clocks that go on when a test says so, in steps that are no standstill. */
function stepped(t: Test): { pass: (ms: number) => void; now: () => number } {
  let now = standstill.now() + 1000
  t.intercept(performance, 'now', { value: () => now })
  t.intercept(Date, 'now', { value: () => now })
  standstill.now()
  const pass = (ms: number): void => {
    for (let left = ms; left > 0; left -= 400) {
      now += Math.min(left, 400)
      standstill.now()
    }
  }
  return { pass, now: () => standstill.now() }
}

await test('what was read is known as of the question, or as of the answer for who waits for it, unless that took over 2 seconds', async (t) => {
  const { pass, now } = stepped(t)
  const paper = new Paper()
  for (const [isAsked, tookMs, knownMs] of [
    [false, 300, 0],
    [true, 300, 300],
    [true, 2000, 2000],
    [true, 2001, 0],
  ] as const) {
    const { state } = shared(paper)
    t.equal(state.knownAt, -Infinity)
    paper.before = () => pass(tookMs)
    const askedAt = now()
    await state.read(isAsked)
    t.equal(state.knownAt - askedAt, knownMs, `${tookMs} ms`)
  }
})

await test('the clock of the store is told by its answer, or for what must not last too long by the question', async (t) => {
  const { pass } = stepped(t)
  for (const isAhead of [false, true]) {
    const paper = new Paper()
    const { state } = shared(paper, { ...COUNT, isAhead })
    paper.before = () => pass(200)
    await state.read()
    t.equal(state.now, isAhead ? 5200 : 5000)
    pass(100)
    t.equal(state.now, isAhead ? 5300 : 5100)
  }
})
