import { setImmediate as turn } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { Connection } from '../../src/store/links/connection.ts'
import { ReplicatedWrites } from '../../src/store/links/replicated-writes.ts'
import { HeldTimers } from '../support/time/held-timers.ts'

const WAIT_MS = 200
/** For the replies of the master, besides that for which it waits. */
const REPLY_MS = WAIT_MS + 500
const OPEN_MS = 1000

/** Writes over connections without a server, which answer as a test says. */
function writesOf(t: Test, hasIdentity = false, isTold = true) {
  const log: unknown[] = []
  const world = {
    log,
    opening: async (): Promise<void> => undefined,
    confirmed: async (): Promise<number> => 2,
    identity: async (): Promise<string> => 'one',
  }
  t.intercept(Connection.prototype, 'connect', { value: async () => (log.push('connect'), world.opening()) })
  t.intercept(Connection.prototype, 'destroy', { value: () => log.push('destroy') })
  t.intercept(Connection.prototype, 'wait', {
    value: async (...args: unknown[]) => (log.push(['wait', ...args]), world.confirmed()),
  })
  const master = { name: 'one', options: { socket: { host: '127.0.0.1', port: 1 } }, owns: () => true }
  const failures: string[] = []
  const writes = new ReplicatedWrites(async () => (log.push('find'), master), {
    replicas: 2,
    waitMs: WAIT_MS,
    ...(hasIdentity && { identify: async () => (log.push('identify'), world.identity()) }),
    ...(isTold && { failed: (error: Error) => void failures.push(error.message) }),
  })
  t.teardown(() => writes.close())
  const write = (name: string) =>
    writes.write(async () => {
      log.push(name)
      if (name === 'refused') throw new Error('refused by the server')
      return `reply to ${name}`
    })
  return { world, writes, write, failures, logged: () => log.splice(0) }
}

const OPENED = ['find', 'connect']
const WAIT = ['wait', 2, WAIT_MS]

await test('a write gets its reply once enough replicas have it, and those that come meanwhile share the next wait', async (t) => {
  const { write, writes, logged, failures } = writesOf(t)
  t.same(logged(), [], 'nothing is opened before the first write')
  t.doesNotThrow(() => writes.leave('it is a slave'))
  const first = write('a')
  const others = new Promise<void>((resolve) => setImmediate(resolve)).then(() => Promise.all([write('b'), write('c')]))
  t.equal(await first, 'reply to a')
  t.same(await others, ['reply to b', 'reply to c'])
  t.same(logged(), [...OPENED, 'a', WAIT, 'b', 'c', WAIT])
  t.equal(await writes.connection(), await writes.connection())
  t.same([logged(), failures], [[], []])
})

await test('a write that the server refuses fails alone', async (t) => {
  const { write, failures } = writesOf(t)
  const [good, refused] = [write('good'), write('refused')]
  await t.rejects(refused, { message: 'refused by the server' })
  t.equal(await good, 'reply to good')
  t.same(failures, [])
})

await test('500 writes share a wait, and no more', async (t) => {
  const { write, logged } = writesOf(t)
  await Promise.all(Array.from({ length: 501 }, (_, at) => write(`${at}`)))
  const waits = logged().flatMap((entry, at) => (Array.isArray(entry) ? [at] : []))
  t.same(waits, [OPENED.length + 500, OPENED.length + 502])
})

await test('too few replicas fail all writes that wait, and the connection is kept', async (t) => {
  const { world, write, failures, logged } = writesOf(t)
  const answer = Promise.withResolvers<number>()
  world.confirmed = () => answer.promise
  const first = write('a')
  await turn()
  await turn()
  const second = write('b')
  answer.resolve(1)
  const why = { message: '1 of 2 replicas confirmed' }
  await Promise.all([t.rejects(first, why), t.rejects(second, { name: 'Unsent', cause: why })])
  t.same(failures, [why.message])
  world.confirmed = async () => 2
  t.equal(await write('c'), 'reply to c')
  t.notOk(logged().includes('destroy'))
})

await test('whoever writes need not be told of failures besides', async (t) => {
  const { world, write } = writesOf(t, false, false)
  world.confirmed = async () => 1
  await t.rejects(write('a'), { message: '1 of 2 replicas confirmed' })
  world.confirmed = async () => 2
  t.equal(await write('b'), 'reply to b')
})

await test('a connection on which waiting fails is not believed any more', async (t) => {
  const { world, write, failures, logged } = writesOf(t)
  world.confirmed = () => Promise.reject(new Error('lost'))
  await t.rejects(write('a'), { message: 'lost' })
  t.same(logged(), [...OPENED, 'a', WAIT, 'destroy'])
  world.confirmed = async () => 2
  t.equal(await write('b'), 'reply to b')
  t.same(logged(), [...OPENED, 'b', WAIT])
  t.same(failures, ['lost'])
})

await test('a master that does not reply in time confirms nothing', async (t) => {
  const { world, write, logged } = writesOf(t)
  world.confirmed = () => new Promise(() => undefined)
  const limit = new HeldTimers(t, 'setTimeout', REPLY_MS)
  const late = write('a')
  late.catch(() => undefined)
  for (let turns = 0; turns < 10; turns++) await turn()
  t.equal(limit.size, 1)
  limit.run()
  await t.rejects(late, { code: 'ETIMEDOUT' })
  t.ok(logged().includes('destroy'))
})

await test('a connection that does not open in time is waited for no longer, and is not given up', async (t) => {
  const { world, write, logged, failures } = writesOf(t)
  const opening = Promise.withResolvers<undefined>()
  world.opening = () => opening.promise
  const limit = new HeldTimers(t, 'setTimeout', OPEN_MS)
  const late = write('a')
  await turn()
  t.equal(limit.size, 1)
  limit.run()
  await t.rejects(late, { name: 'Unsent', cause: { code: 'ETIMEDOUT' } })
  t.same([logged(), failures], [OPENED, ['no reply in time']])
  opening.resolve(undefined)
  t.equal(await write('b'), 'reply to b')
  t.same(logged(), ['b', WAIT])
})

await test('a master must be the one that it was when the connection was opened', async (t) => {
  const { world, write, logged, failures } = writesOf(t, true)
  t.equal(await write('a'), 'reply to a')
  t.same(logged(), [...OPENED, 'identify', 'a', WAIT, 'identify'])
  world.identity = async () => 'another'
  await t.rejects(write('b'), { message: 'the master was replaced' })
  t.same(failures, ['the master was replaced'])
  t.equal(await write('c'), 'reply to c', 'it is asked anew')
})

await test('after the close no write succeeds', async (t) => {
  const { write, writes, logged } = writesOf(t)
  writes.close()
  await write('a')
  logged()
  writes.close()
  t.same(logged(), ['destroy'])
  await t.rejects(write('b'))
})
