import { Registry } from 'prom-client'
import { test } from 'tap'
import { Changeable } from '../../src/config/changing.ts'
import { ordersOf, type ControlDocument } from '../../src/controls/control-document.ts'
import { createControls } from '../../src/controls/open-controls.ts'
import { Envelope, type Session } from '../../src/sessions/index.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { played } from '../support/login/played.ts'

const SESSION = { key: 'key', record: {} } as Session
/** Nobody is told what is meant for one user. */
const FAILED = { is: 'paused', message: undefined, closing: true }
const MINE = { is: 'paused', message: 'Call us', closing: true }

const reread = (name: string, subject?: string) => ({ record: { accessToken: name, ...(subject && { subject }) } })

/** Controls that pause the orders of `ada`, and whose sessions a test plays. */
async function controls(knows: 'upstream' | 'login' | 'nobody' = 'upstream') {
  const store = new MemoryStore()
  const world: Record<string, (...args: unknown[]) => unknown> = {
    reauthorize: () => ({ is: 'authorized', session: reread('token') }),
    current: () => true,
    ask: () => 'ada',
  }
  const lines: unknown[][] = []
  const log = { error: (...args: unknown[]) => lines.push(args) }
  const { calls, now, part } = played(world)
  const made = await createControls({
    store,
    confirmed: store,
    envelope: new Envelope(new Changeable(['the secret of a test, of thirty-two bytes'])),
    sessions: { reauthorize: part('reauthorize'), isCurrent: now('current') },
    subjects: knows === 'nobody' ? undefined : { identity: knows === 'upstream' ? { ask: part('ask') } : undefined },
    registry: new Registry(),
    instance: 'one',
    log,
  } as unknown as Parameters<typeof createControls>[0])
  const value = { closing: true, message: 'Call us' }
  const document: ControlDocument = new Map([[ordersOf('ada'), { version: 1, at: 1, value }]])
  Object.defineProperties(made.shared, { isBehind: { value: false }, document: { value: document } })
  await made.shared.catchUp()
  const verdict = async (): Promise<unknown> => {
    await made.identify(SESSION)
    return made.verdictOn(SESSION)
  }
  return { world, calls, lines, log, verdict }
}

await test('a session without a subject is read again, and upstream is asked whose its token is', async (t) => {
  const { verdict, calls, lines, log } = await controls()
  t.match(await verdict(), MINE)
  t.match(calls, [
    ['reauthorize', SESSION],
    ['ask', 'token', { id: String, consequence: 'the orders of a session stay paused' }],
  ])
  const asker = Object(calls[1]?.[2])
  t.equal(asker.log, log)
  t.equal(asker.conditions.session(), true)
  t.strictSame(calls.at(-1), ['current', reread('token')], 'it must be current when the request is sent')
  t.strictSame(lines, [])
  const other = await controls()
  other.world['ask'] = () => 'bob'
  t.equal(await other.verdict(), undefined)
})

await test('a session that knows its subject by now needs no question', async (t) => {
  const { verdict, calls, world } = await controls()
  world['reauthorize'] = () => ({ is: 'authorized', session: reread('token', 'ada') })
  t.match(await verdict(), MINE)
  t.strictSame(calls, [['reauthorize', SESSION]])
})

await test('where the session has ended, or the server knows no subjects, nobody is asked', async (t) => {
  const { verdict, calls, lines, world } = await controls()
  world['reauthorize'] = () => ({ is: 'anonymous' })
  t.match(await verdict(), FAILED)
  t.strictSame([calls, lines], [[['reauthorize', SESSION]], []])
  for (const knows of ['login', 'nobody'] as const) {
    const ignorant = await controls(knows)
    t.match(await ignorant.verdict(), FAILED)
    t.strictSame([ignorant.calls.some(([what]) => what === 'ask'), ignorant.lines], [false, []], knows)
  }
})

await test('a question that failed is asked once more if the session has changed meanwhile, and not otherwise', async (t) => {
  for (const [isCurrent, times] of [
    [true, 1],
    [false, 2],
  ] as const) {
    const { verdict, calls, world } = await controls()
    world['ask'] = () => undefined
    world['current'] = () => isCurrent
    t.match(await verdict(), FAILED)
    t.equal(calls.filter(([what]) => what === 'ask').length, times)
  }
  const { verdict, world } = await controls()
  const answers = [undefined, 'ada']
  world['ask'] = () => answers.shift()
  world['current'] = () => false
  t.match(await verdict(), MINE)
})

await test('a fault is told to the operator, and the orders stay paused', async (t) => {
  for (const failing of ['reauthorize', 'ask']) {
    const { verdict, lines, world } = await controls()
    world[failing] = () => Promise.reject(new TypeError('planted'))
    t.match(await verdict(), FAILED)
    t.match(lines, [[{ err: /planted/ }, 'a session could not be identified']])
  }
})
