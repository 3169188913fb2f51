import { setImmediate as turn } from 'node:timers/promises'
import { test } from 'tap'
import { dialing } from '../../src/peers/dialing.ts'
import { reconnectMs } from '../../src/store/links/lasting-connection.ts'
import { connectionOf, SERVER } from '../support/redis/lasting-alone.ts'
import { until } from '../support/time/until.ts'

const OPENED = ['find', 'connect', ['up', 'one']]

await test('a connection is there once it is open, and the same for all who ask', async (t) => {
  const { lasting, world, logged } = connectionOf(t)
  t.equal(lasting.isUp, false)
  t.throws(() => lasting.present, { message: 'there is no connection' })
  const [one, other] = [lasting.opened(), lasting.next()]
  const connection = await one
  t.equal(connection, world.made[0])
  t.equal(await other, connection)
  t.same(logged(), OPENED)
  t.equal(lasting.isUp, true)
  t.equal(lasting.present, connection)
  t.equal(await lasting.opened(), connection)
  t.equal(await lasting.next(), connection)
})

await test('a connection is opened as its owner does it, with no queue and no reconnecting of its own', async (t) => {
  const opened: unknown[] = []
  const { lasting, logged } = connectionOf(t, { open: async (...args) => void opened.push(...args) })
  const connection = await lasting.next()
  t.same(logged(), ['find', ['up', 'one']])
  t.same([opened.length, opened[0] === connection, opened[1]], [2, true, SERVER])
  t.match(connection.options, {
    disableOfflineQueue: true,
    socket: { host: '127.0.0.1', port: 1, connectTimeout: 2000, reconnectStrategy: false, ...dialing('redis', 2000) },
  })
})

await test('an owner need not be told', async (t) => {
  const { lasting, logged } = connectionOf(t, { up: undefined as never, lost: undefined as never })
  const first = await lasting.next()
  lasting.drop('no master')
  t.not(await lasting.next(), first)
  t.same(logged(), ['find', 'connect', 'destroy', 'find', 'connect'])
})

await test('a connection that is lost is told, and opened again', async (t) => {
  for (const [how, reason] of [
    ['error', 'ECONNRESET'],
    ['end', 'closed'],
    ['drop', 'no master'],
  ] as const) {
    const { lasting, logged } = connectionOf(t)
    const first = await lasting.next()
    logged()
    if (how === 'drop') lasting.drop(reason)
    else first.emit(how, Object.assign(new Error('reset'), { code: reason }))
    t.same(logged(), ['destroy', ['lost', reason, true]])
    t.equal(lasting.isUp, false)
    await t.rejects(lasting.opened(), { message: 'there is no connection' }, 'nobody waits for another one')
    first.emit('end')
    lasting.drop('again')
    t.same(logged(), [], 'it is lost once')
    const second = await lasting.next()
    t.not(second, first)
    t.same(logged(), OPENED)
    first.emit('end')
    t.same([logged(), lasting.isUp], [[], true], 'the first one does not matter any more')
  }
})

await test('a connection that cannot be opened fails for all who wait, and another one is tried', async (t) => {
  const { lasting, world, logged, log } = connectionOf(t)
  const refusal = Object.assign(new Error('refused'), { code: 'ECONNREFUSED' })
  world.open = async () => {
    world.made.at(-1)?.emit('error', new Error('before it is open'))
    world.made.at(-1)?.emit('end')
    world.open = async () => undefined
    throw refusal
  }
  const waiting = [lasting.opened(), lasting.next()]
  for (const each of await Promise.allSettled(waiting)) t.equal(each.status === 'rejected' && each.reason, refusal)
  t.same(logged(), ['find', 'connect', 'destroy', ['lost', 'ECONNREFUSED', false]])
  await t.rejects(lasting.opened(), { message: 'there is no connection' })
  await lasting.next()
  t.same(log, OPENED)
})

await test('a connection that is not open in time, or that is given up meanwhile, is left', async (t) => {
  for (const [how, reason, message] of [
    ['late', 'ETIMEDOUT', 'no reply in time'],
    ['dropped', 'no master', 'no connection to one'],
  ] as const) {
    const { lasting, world, timers, logged } = connectionOf(t)
    const opening = Promise.withResolvers<undefined>()
    world.open = () => opening.promise
    await turn()
    const waiting = lasting.next()
    t.equal(timers.open.size, 1)
    if (how === 'late') timers.open.run()
    else {
      lasting.drop(reason)
      opening.resolve(undefined)
    }
    await t.rejects(waiting, { message })
    t.same(logged(), ['find', 'connect', 'destroy', ['lost', reason, false]])
    t.equal(lasting.isUp, false)
  }
})

await test('while no server is known none is tried, and the next try comes', async (t) => {
  const known: (typeof SERVER)[] = []
  let asked = 0
  const { lasting, world, logged } = connectionOf(t, { find: async () => (asked++, known[0]) })
  await until(() => asked >= 2)
  t.same([logged(), lasting.isUp], [[], false])
  known.push(SERVER)
  t.equal(await lasting.next(), world.made[0])
})

await test('a server is asked for a sign of life each second, and left if it gives none', async (t) => {
  const { lasting, world, timers, logged } = connectionOf(t)
  await lasting.ask()
  t.notOk(logged().includes('ping'), 'without a connection there is nothing to ask')
  await lasting.next()
  logged()
  for (const each of [1, 2]) {
    t.equal(timers.ask.size, 1, `before question ${each}`)
    timers.ask.run()
    t.same(logged(), ['ping'])
    await turn()
    t.equal(timers.silence.size, 0)
  }
  world.reply = () => new Promise(() => undefined)
  timers.ask.run()
  timers.silence.run()
  await turn()
  await turn()
  t.same(logged(), ['ping', 'destroy', ['lost', 'silence', true]])
  await turn()
  t.equal(timers.ask.size, 0)
})

await test('an answer that is an error is a sign of life, unless the connection is closed', async (t) => {
  const { lasting, world, logged } = connectionOf(t)
  await lasting.next()
  logged()
  world.reply = async () => Promise.reject(new Error('NOPERM'))
  await lasting.ask()
  t.same(logged(), ['ping'])
  world.isReady = false
  await lasting.ask()
  t.same(logged(), ['ping', 'destroy', ['lost', 'closed', true]])
})

await test('an answer of a connection that is left already says nothing of the next one', async (t) => {
  const { lasting, world, logged } = connectionOf(t)
  await lasting.next()
  const reply = Promise.withResolvers<unknown>()
  world.reply = () => reply.promise
  world.isReady = false
  const asked = lasting.ask()
  lasting.drop('no master')
  await lasting.next()
  logged()
  reply.reject(new Error('closed'))
  await asked
  t.same([logged(), lasting.isUp], [[], true])
})

await test('an owner may ask a question of its own', async (t) => {
  const asked: unknown[] = []
  const { lasting, logged } = connectionOf(t, { ask: async (...args) => void asked.push(...args) })
  const connection = await lasting.next()
  logged()
  await lasting.ask()
  t.same([asked.length, asked[0] === connection, asked[1], logged()], [2, true, SERVER, []])
})

await test('a connection that is closed ends, tells no loss and is never opened again', async (t) => {
  const { lasting, logged } = connectionOf(t)
  await lasting.next()
  logged()
  await lasting.close()
  await turn()
  t.same([logged(), lasting.isUp], [['destroy'], false])
  await t.rejects(lasting.next(), { message: 'closed' })
  const early = connectionOf(t)
  await early.lasting.close()
  await t.rejects(early.lasting.next(), { message: 'closed' })
  t.same(early.logged(), ['find'])
  await early.lasting.close(777)
  t.same(early.logged(), [])
})

await test('replies to what was sent are waited for before a connection is closed, but not for ever', async (t) => {
  for (const how of ['replies', 'fails', 'late'] as const) {
    const { lasting, world, timers, logged } = connectionOf(t)
    await lasting.next()
    logged()
    const closing = Promise.withResolvers<undefined>()
    world.closing = () => closing.promise
    const closed = lasting.close(777)
    await turn()
    t.same(logged(), ['close'])
    if (how === 'replies') closing.resolve(undefined)
    else if (how === 'fails') closing.reject(new Error('lost'))
    else timers.grace.run()
    await closed
    t.same(logged(), ['destroy'])
  }
})

await test('pauses grow with each vain try, and begin anew after a connection', async (t) => {
  const pauses: number[] = []
  const { min } = Math
  t.intercept(Math, 'min', { value: (...all: number[]) => (all[1] === 1100 ? pauses.push(min(...all)) : min(...all)) })
  const known: (typeof SERVER)[] = []
  const { lasting, world } = connectionOf(t, { find: async () => known[0] })
  await until(() => pauses.length >= 4)
  known.push(SERVER)
  await lasting.next()
  t.same(pauses.splice(0).slice(0, 4), [100, 200, 400, 800])
  world.open = async () => Promise.reject(new Error('refused'))
  lasting.drop('no master')
  await until(() => pauses.length >= 3)
  t.same(pauses.slice(0, 3), [100, 200, 400])
})

await test('the pauses between tries grow from 100 ms to 1100 ms, half of them left to chance', (t) => {
  t.intercept(Math, 'random', { value: () => 0 })
  t.same([0, 1, 3, 4, 9].map(reconnectMs), [100, 200, 800, 1100, 1100])
  t.intercept(Math, 'random', { value: () => 1 })
  t.same([0, 9].map(reconnectMs), [50, 550])
  t.end()
})
