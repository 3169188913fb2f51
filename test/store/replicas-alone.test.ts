import { test, type Test } from 'tap'
import { ConfirmingServer } from '../../src/store/links/confirming-server.ts'
import type { MasterServer } from '../../src/store/links/redis-link.ts'
import { Replicas } from '../../src/store/links/replicas.ts'
import { ReplicatedWrites } from '../../src/store/links/replicated-writes.ts'
import { HeldTimers } from '../support/time/held-timers.ts'

/** How long the answer may take whether a replica has a write. */
const ANSWER_MS = 1000
/** What a replica is to have: a key that is there for a second, also where the server is full. */
const MARK = "#!lua flags=allow-oom\nreturn redis.call('SET', KEYS[1], '', 'PX', 1000)"

type Role = () => Promise<unknown>

/** The replicas of masters whose connections answer as a test says. */
function replicasOf(t: Test) {
  const log: unknown[] = []
  const world = {
    log,
    names: new Set(['one', 'two']),
    /** The master of each key is named by its first word. */
    masterOf: (key: string): MasterServer => ({ name: key.split(' ', 1)[0] ?? '' }) as MasterServer,
    role: (async () => ['master', 1, [['replica']]]) as Role,
    marked: async () => undefined as unknown,
    failure: undefined as string | undefined,
  }
  const wire = {
    role: () => (log.push('role'), world.role()),
    eval: (script: string, { keys, arguments: values }: { keys: string[]; arguments: string[] }) => (
      log.push([script === MARK ? 'mark' : script, ...keys, ...values]),
      world.marked()
    ),
  }
  const intercept = <Target extends object>(target: Target, name: keyof Target, value: unknown) =>
    t.intercept(target, name, { value })
  intercept(ReplicatedWrites.prototype, 'connection', async () => wire)
  intercept(ReplicatedWrites.prototype, 'write', (run: (connection: unknown) => unknown) => run(wire))
  intercept(ReplicatedWrites.prototype, 'leave', (reason: string) => log.push(`leave: ${reason}`))
  intercept(ReplicatedWrites.prototype, 'close', () => log.push('close'))
  intercept(
    ConfirmingServer.prototype,
    'write',
    (key: string, run: (connection: unknown) => unknown) => (log.push(`write ${key}`), run(wire)),
  )
  intercept(ConfirmingServer.prototype, 'close', () => log.push('close confirming'))
  t.intercept(ConfirmingServer.prototype, 'failure', { get: () => world.failure })
  const link = { masterOf: (key: string) => world.masterOf(key), masterNames: () => world.names }
  const note = (details: object, message: string): unknown => log.push([details, message])
  const replicas = new Replicas(link, { warn: note, info: note })
  return { world, replicas, logged: () => log.splice(0) }
}

await test('a replica has the writes of a key once it has a mark that was written behind them, in the same slot', async (t) => {
  const { replicas, logged } = replicasOf(t)
  t.equal(await replicas.have('one key'), true)
  t.same(logged(), ['role', ['mark', '{one key}:ended']])
})

await test('a server that is a replica by now is left, and confirms nothing', async (t) => {
  const { world, replicas, logged } = replicasOf(t)
  world.role = async () => ['slave', 'host', 6379, 'connect', 1]
  t.equal(await replicas.have('one'), false)
  t.same(logged(), ['role', 'leave: it is a slave'])
})

await test('it is unknown where there has been no replica, and false where there was one', async (t) => {
  const { world, replicas, logged } = replicasOf(t)
  for (const none of [
    ['master', 1, []],
    ['master', 1, undefined],
  ]) {
    world.role = async () => none
    t.equal(await replicas.have('one'), undefined)
  }
  t.same(logged(), ['role', 'role'])
  world.role = async () => ['master', 1, [['replica']]]
  t.equal(await replicas.have('one'), true)
  world.role = async () => ['master', 1, []]
  t.equal(await replicas.have('one'), false)
  t.equal(await replicas.have('two'), undefined, 'of another master')
})

await test('a master without replicas that takes the place of one that had some has lost them, and so has each that follows', async (t) => {
  const { world, replicas } = replicasOf(t)
  world.names = new Set(['one', 'two', 'goes', 'stays'])
  for (const name of ['one', 'two']) t.equal(await replicas.have(name), true)
  world.role = async () => ['master', 1, []]
  for (const name of ['goes', 'stays']) t.equal(await replicas.have(name), undefined)
  // All are failed over at once, and their successors asked one after the other.
  world.names = new Set(['three', 'four', 'stays'])
  for (const name of ['three', 'four']) t.equal(await replicas.have(name), false, name)
  world.names = new Set(['one', 'four', 'stays'])
  t.equal(await replicas.have('one'), false, 'the former master is one again')
  t.equal(await replicas.have('stays'), undefined, 'a master that never had one')
})

await test('a master without replicas that takes the place of one that never had any has lost none', async (t) => {
  const { world, replicas } = replicasOf(t)
  world.role = async () => ['master', 1, []]
  t.equal(await replicas.have('one'), undefined)
  world.names = new Set(['two'])
  t.equal(await replicas.have('two'), undefined)
})

await test('where replicas are expected, a master that has never named one has lost them', async (t) => {
  const { world, replicas } = replicasOf(t)
  world.role = async () => ['master', 1, []]
  t.equal(await replicas.have('one'), undefined)
  replicas.expect()
  t.equal(await replicas.have('one'), false)
  t.equal(await replicas.have('two'), false)
})

await test('it is false where a mark is not confirmed, or not in time', async (t) => {
  const { world, replicas } = replicasOf(t)
  world.marked = () => Promise.reject(new Error('0 of 1'))
  t.equal(await replicas.have('one'), false)
  const limit = new HeldTimers(t, 'setTimeout', ANSWER_MS)
  world.marked = () => new Promise(() => undefined)
  const late = replicas.have('one')
  t.equal(limit.size, 1)
  limit.run()
  t.equal(await late, false)
  world.marked = async () => undefined
  t.equal(await replicas.have('one'), true, 'the next check is made all the same')
})

await test('it is false without a master', async (t) => {
  const { world, replicas } = replicasOf(t)
  world.masterOf = () => {
    throw new Error('no master')
  }
  t.equal(await replicas.have('one'), false)
  await t.rejects(
    replicas.write('one', 1, async () => 'reply'),
    { message: 'no master' },
  )
})

await test('who asks while a check of a master runs shares the next one, and the one after that begins anew', async (t) => {
  const { replicas, logged } = replicasOf(t)
  const asked = ['one a', 'one b', 'one c', 'two d'].map((key) => replicas.have(key))
  await asked[0]
  const more = replicas.have('one e')
  t.same(await Promise.all([...asked, more]), [true, true, true, true, true])
  const marks = logged().flatMap((entry) => (Array.isArray(entry) ? [entry[1] as string] : []))
  t.same(marks.sort(), ['{one a}:ended', '{one b}:ended', '{one e}:ended', '{two d}:ended'])
})

await test('a master that is no more is left, and what was opened to it is closed', async (t) => {
  const { world, replicas, logged } = replicasOf(t)
  await replicas.have('one')
  await replicas.write('one', 1, async () => 'reply')
  logged()
  world.names = new Set(['two'])
  await replicas.have('two')
  t.same(logged(), ['close', 'close confirming', 'role', ['mark', '{two}:ended']])
  world.names = new Set(['two', 'three'])
  await replicas.have('three')
  t.same(logged(), ['role', ['mark', '{three}:ended']])
})

await test('a write is given to what confirms it, of which there is one for each master, and its reply comes back', async (t) => {
  const { replicas, logged } = replicasOf(t)
  t.equal(await replicas.write('one key', 2, async () => 'reply'), 'reply')
  t.equal(await replicas.write('one other', 2, async () => 'reply'), 'reply')
  t.same(logged(), ['write one key', 'write one other'])
})

await test('the failures of present masters are told once', async (t) => {
  const { world, replicas } = replicasOf(t)
  await replicas.have('one')
  t.same(replicas.failures, [])
  world.failure = 'away'
  t.same(replicas.failures, [], 'nothing had to be confirmed')
  await replicas.write('one', 1, async () => 'reply')
  await replicas.write('two', 1, async () => 'reply')
  t.same(replicas.failures, ['away'])
  world.names = new Set()
  t.same(replicas.failures, [])
  world.failure = undefined
  world.names = new Set(['one'])
  t.same(replicas.failures, [])
})

await test('after the close nothing is asked, and everything is closed', async (t) => {
  const { replicas, logged } = replicasOf(t)
  await replicas.have('one')
  await replicas.write('two', 1, async () => 'reply')
  logged()
  replicas.close()
  t.same(logged(), ['close', 'close', 'close confirming'])
  t.equal(await replicas.have('one'), false)
  await t.rejects(
    replicas.write('one', 1, async () => 'reply'),
    { message: 'closed' },
  )
  t.same(logged(), [])
})
