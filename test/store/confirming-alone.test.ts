import { ErrorReply } from '@redis/client'
import { setImmediate as turn } from 'node:timers/promises'
import { test, type Test } from 'tap'
import { ConfirmingServer } from '../../src/store/links/confirming-server.ts'
import { Connection } from '../../src/store/links/connection.ts'
import { HeldTimers } from '../support/time/held-timers.ts'

const PROBED = ['set', '{key}:probe', { type: 'PX', value: 1000 }]

/** A server whose replicas confirm as a test says. */
function serverOf(t: Test) {
  const log: unknown[] = []
  const seconds = new HeldTimers(t, 'setTimeout', 1000)
  const world = {
    confirmed: async (): Promise<number> => 2,
    info: { role: 'master', master_replid: 'one' } as Record<string, string>,
    set: async (): Promise<string> => 'OK',
  }
  const answers = {
    connect: () => log.push('connect'),
    destroy: () => log.push('destroy'),
    ping: async () => 'PONG',
    wait: async (...args: unknown[]) => (log.push(['wait', ...args]), world.confirmed()),
    info: async (section: string) => (log.push(['info', section]), world.info),
    set: async (key: string, value: string, { expiration }: { expiration: unknown }) => {
      t.match(value, /^[\w-]{36}$/, 'another one each time')
      log.push(['set', key, expiration])
      return world.set()
    },
  }
  for (const [name, value] of Object.entries(answers))
    t.intercept(Connection.prototype, name as 'ping', {
      value: async (...args: never[]) => (value as (...args: never[]) => unknown)(...args),
    })
  const master = { name: 'one', options: { socket: { host: '127.0.0.1', port: 1 } }, owns: () => true }
  const server = new ConfirmingServer(async () => master, 2, {
    failed: (reason) => void log.push(`failed: ${reason}`),
    recovered: () => void log.push('recovered'),
  })
  t.teardown(() => server.close())
  const write = (key = 'key') => server.write(key, async () => (log.push(`write ${key}`), `reply to ${key}`))
  /** A second passes. */
  const pass = async (): Promise<void> => {
    seconds.run()
    for (let turns = 0; turns < 10; turns++) await turn()
  }
  return { server, world, write, pass, seconds, logged: () => log.splice(0) }
}

const ASKED = [
  ['wait', 2, 500],
  ['info', 'replication'],
]

await test('a write is confirmed by so many replicas of the server that is still the same master', async (t) => {
  const { server, write, world, logged } = serverOf(t)
  t.equal(await write(), 'reply to key')
  t.same(logged(), ['connect', ['info', 'replication'], 'write key', ...ASKED])
  t.equal(server.failure, undefined)
  world.info = { role: 'master', master_replid: 'two' }
  await t.rejects(write(), { message: 'the master was replaced' })
  t.equal(server.failure, 'the master was replaced')
})

await test('a server that is no master, or does not say which, confirms nothing', async (t) => {
  for (const [info, message] of [
    [{ role: 'slave', master_replid: 'one' }, 'it is a slave'],
    [{ role: 'master' }, 'it is a master'],
  ] as const) {
    const { world, write, server } = serverOf(t)
    world.info = info
    await t.rejects(write(), { name: 'Unsent', cause: { message } })
    t.equal(server.failure, message)
  }
})

await test('after a failure writes fail at once, until a probe of the latest key shows that replicas confirm again', async (t) => {
  const { server, world, write, pass, logged } = serverOf(t)
  await write('another')
  world.confirmed = async () => 1
  const message = '1 of 2 replicas confirmed'
  await t.rejects(write(), { message })
  t.same(logged().slice(-1), [`failed: ${message}`])
  await t.rejects(write('third'), { name: 'Unsent', cause: { message } })
  t.same(logged(), [], 'nothing is sent')
  for (let count = 0; count < 2; count++) {
    await pass()
    t.same(logged(), [PROBED, ...ASKED], 'a failure is told once')
  }
  t.equal(server.failure, message)
  world.confirmed = async () => 2
  await pass()
  t.same(logged(), [PROBED, ...ASKED, 'recovered'])
  t.equal(server.failure, undefined)
  t.equal(await write(), 'reply to key')
  logged()
  await pass()
  t.same(logged(), [], 'it is probed no more')
  world.confirmed = async () => 0
  await t.rejects(write(), { message: '0 of 2 replicas confirmed' })
  t.same(logged().slice(-1), ['failed: 0 of 2 replicas confirmed'], 'the next failure is another one')
})

await test('a slot that has moved away is no failure of the server, and any other refusal is', async (t) => {
  for (const [code, recovers] of [
    ['MOVED', true],
    ['ASK', true],
    ['OOM', false],
  ] as const) {
    const { server, world, write, pass } = serverOf(t)
    world.confirmed = async () => 0
    await t.rejects(write())
    world.confirmed = async () => 2
    world.set = () => Promise.reject(new ErrorReply(`${code} 1 host:1`))
    await pass()
    t.equal(server.failure === undefined, recovers, code)
  }
})

await test('after the close nothing is written or probed, and no failure is told', async (t) => {
  const { server, world, write, pass, seconds, logged } = serverOf(t)
  world.confirmed = async () => 0
  await t.rejects(write())
  logged()
  server.close()
  await turn()
  t.same([logged(), seconds.size], [['destroy'], 0])
  await t.rejects(write(), { name: 'Unsent', cause: { message: 'the master was replaced' } })
  await pass()
  t.same(logged(), [])

  const other = serverOf(t)
  const answer = Promise.withResolvers<number>()
  other.world.confirmed = () => answer.promise
  const unconfirmed = other.write()
  unconfirmed.catch(() => undefined)
  for (let turns = 0; turns < 10; turns++) await turn()
  other.server.close()
  answer.resolve(0)
  await t.rejects(unconfirmed)
  t.equal(
    other.logged().some((entry) => String(entry).startsWith('failed')),
    false,
  )
})
