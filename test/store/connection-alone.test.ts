import { setImmediate as turn } from 'node:timers/promises'
import { RESP_TYPES, RedisClient } from '@redis/client'
import { test, type Test } from 'tap'
import { dialing } from '../../src/peers/dialing.ts'
import { names } from '../../src/peers/names.ts'
import { Changeable } from '../../src/config/changing.ts'
import { newConnection, withConnection, type Connection } from '../../src/store/links/connection.ts'
import { LiveCredentials } from '../../src/store/links/live-credentials.ts'
import { HeldTimers } from '../support/time/held-timers.ts'

/** A connection whose server answers as a test says. */
function wireOf(t: Test) {
  const sent: unknown[] = []
  const world = {
    answer: async ([name, word]: readonly string[]): Promise<unknown> => (name === 'PING' ? (word ?? 'PONG') : 'OK'),
  }
  t.intercept(RedisClient.prototype, 'sendCommand', {
    value: (words: string[], options?: unknown) => {
      sent.push(options === undefined ? words : [words, options])
      return world.answer(words)
    },
  })
  t.intercept(RedisClient.prototype, 'destroy', { value: () => sent.push('destroy') })
  const connection = newConnection({ socket: { host: '127.0.0.1', port: 1 } })
  return { connection, world, sent: () => sent.splice(0) }
}

await test('each command goes out in its own words', async (t) => {
  const { connection, sent } = wireOf(t)
  const expiration = { type: 'PXAT', value: 7 } as const
  await connection.get('k')
  await connection.set('k', 'v', { expiration })
  await connection.set('k', 'v', { expiration, condition: 'NX' })
  await connection.eval('return 1', { keys: ['a', 'b'], arguments: ['x'] })
  await connection.readMany(['a', 'b'])
  await connection.ping()
  await connection.role()
  await connection.wait(2, 500)
  await connection.send('ignored', ['GET', 'k'])
  await connection.send('ignored', ['GET', 'k'], true)
  t.same(sent(), [
    ['GET', 'k'],
    ['SET', 'k', 'v', 'PXAT', '7'],
    ['SET', 'k', 'v', 'PXAT', '7', 'NX'],
    ['EVAL', 'return 1', '2', 'a', 'b', 'x'],
    ['MGET', 'a', 'b'],
    ['PING'],
    ['ROLE'],
    ['WAIT', '2', '500'],
    ['GET', 'k'],
    [['GET', 'k'], { typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer } }],
  ])
})

await test('the fields of INFO are told by their names', async (t) => {
  const { connection, world, sent } = wireOf(t)
  world.answer = async () => '# Memory\r\nused:10\r\nfile:a:b\r\n'
  const { used, file } = await connection.info('memory')
  t.same([used, file, sent()], ['10', 'a:b', [['INFO', 'memory']]])
})

await test('a connection speaks RESP3, does not introduce itself, and follows no server that moves', (t) => {
  const { options } = newConnection({ socket: { host: 'a', port: 7 } })
  t.match(options, { RESP: 3, disableClientInfo: true, maintNotifications: 'disabled', commandOptions: { timeout: 0 } })
  t.end()
})

await test('a connection with live credentials asks for them, by the address of its server', async (t) => {
  const asked: string[] = []
  const live = new LiveCredentials(new Changeable('redis://u:p@a'), () => undefined)
  t.intercept(live, 'forConnection', {
    value: (server: string) => {
      asked.push(server)
      return { type: live.type, credentials: async () => live.access, attend: () => asked.push('attended') }
    },
  })
  const credentialsProvider = live
  newConnection({ url: 'redis://host:7/2', credentialsProvider })
  newConnection({ socket: { host: 'a', port: 7 }, credentialsProvider })
  const { options } = newConnection({ name: 'named', credentialsProvider })
  t.same(asked, ['host:7', 'attended', 'a:7', 'attended', ':', 'attended'])
  t.match(options, { RESP: 3, name: 'named' })
  t.same(Object.keys(options.credentialsProvider ?? {}).toSorted(), ['credentials', 'type'])
  t.end()
})

await test('a connection that is closed while it opens is closed once it is open, and any other stays', (t) => {
  const { connection, sent } = wireOf(t)
  let isOpen = true
  t.intercept(RedisClient.prototype, 'isOpen', { get: () => isOpen })
  connection.emit('ready')
  t.same(sent(), [])
  isOpen = false
  connection.emit('ready')
  t.same(sent(), ['destroy'])
  t.end()
})

const NEW = { username: 'new', password: 'p', tls: false }
const isPing = (words: unknown): boolean => Array.isArray(words) && words[0] === 'PING' && words.length === 2

/** The commands without the random words. */
const wordsOf = (sent: readonly unknown[]): unknown[] => sent.map((words) => (isPing(words) ? 'proof' : words))

await test('new credentials go alone, between two proofs that replies are in step, and what waits follows in its order', async (t) => {
  const { connection, sent } = wireOf(t)
  const authenticated = connection.authenticate(NEW)
  const waiting = [connection.get('a'), connection.get('b')]
  await turn()
  await authenticated
  await Promise.all(waiting)
  t.same(wordsOf(sent()), ['proof', ['AUTH', 'new', 'p'], 'proof', ['GET', 'a'], ['GET', 'b']])
  t.equal(await connection.get('c'), 'OK')
  await connection.authenticate({ password: 'p', tls: false })
  t.same(wordsOf(sent()), [['GET', 'c'], 'proof', ['AUTH', 'p'], 'proof'])
})

await test('nothing is given without a password, or while other credentials are', async (t) => {
  const { connection, sent } = wireOf(t)
  await connection.authenticate({ username: 'new', tls: false })
  t.same(sent(), [])
  const first = connection.authenticate(NEW)
  await connection.authenticate({ ...NEW, password: 'q' })
  await first
  t.same(wordsOf(sent()), ['proof', ['AUTH', 'new', 'p'], 'proof'])
})

await test('a connection that refuses new credentials goes on as it was', async (t) => {
  const { connection, world, sent } = wireOf(t)
  const { answer } = world
  const refusal = new Error('WRONGPASS')
  world.answer = (words) => (words[0] === 'AUTH' ? Promise.reject(refusal) : answer(words))
  await t.rejects(connection.authenticate(NEW), refusal)
  t.notOk(sent().includes('destroy'))
  t.equal(await connection.get('a'), 'OK')
})

await test('a connection whose replies are out of step is closed before it is used again', async (t) => {
  for (const proof of [1, 2]) {
    const { connection, world, sent } = wireOf(t)
    const { answer } = world
    let proofs = 0
    world.answer = async (words) => (isPing(words) && ++proofs === proof ? 'another' : answer(words))
    await t.rejects(connection.authenticate(NEW), { message: 'the replies of Redis are out of step' })
    t.equal(sent().at(-1), 'destroy')
  }
})

await test('a connection with replies that are pending for too long gets nothing, and is closed within five seconds', async (t) => {
  const { connection, world, sent } = wireOf(t)
  t.intercept(Math, 'random', { value: () => 0.5 })
  const [quiet, closing] = [new HeldTimers(t, 'setTimeout', 600), new HeldTimers(t, 'setTimeout', 2500)]
  world.answer = () => new Promise(() => undefined)
  const late = connection.authenticate(NEW)
  late.catch(() => undefined)
  await turn()
  quiet.run()
  await t.rejects(late, { code: 'ETIMEDOUT' })
  t.same(wordsOf(sent()), ['proof'])
  closing.run()
  t.same(sent(), ['destroy'])
})

await test('a connection that gets no reply to new credentials is closed', async (t) => {
  const { connection, world, sent } = wireOf(t)
  const { answer } = world
  world.answer = (words) => (words[0] === 'AUTH' ? new Promise(() => undefined) : answer(words))
  const proof = new HeldTimers(t, 'setTimeout', 400)
  const late = connection.authenticate(NEW)
  late.catch(() => undefined)
  for (let turns = 0; turns < 5; turns++) await turn()
  t.equal(proof.size, 1)
  proof.run()
  await t.rejects(late, { code: 'ETIMEDOUT' })
  t.equal(sent().at(-1), 'destroy')
})

const noLookup = (): void => undefined

/** A connection for one use, which opens as a test says. */
function usesOf(t: Test) {
  const world = {
    log: [] as unknown[],
    made: undefined as Connection | undefined,
    isOpen: true,
    opening: async (): Promise<void> => undefined,
  }
  t.intercept(RedisClient.prototype, 'connect', {
    async value(this: Connection) {
      world.made = this
      world.log.push('connect')
      await world.opening()
      return this
    },
  })
  t.intercept(RedisClient.prototype, 'destroy', { value: () => world.log.push('destroy') })
  t.intercept(RedisClient.prototype, 'isOpen', { get: () => world.isOpen })
  return world
}

await test('a connection for one use is opened as asked, used, and closed', async (t) => {
  const world = usesOf(t)
  const peers: string[] = []
  t.intercept(names, 'for', { value: (peer: string) => (peers.push(peer), noLookup) })
  const reply = await withConnection({ socket: { host: 'a', port: 7 }, username: 'u' }, 1000, async (connection) => {
    t.equal(connection, world.made)
    connection.emit('error', new Error('is reported by what fails'))
    world.log.push('use')
    return 'reply'
  })
  t.equal(reply, 'reply')
  t.same(world.log, ['connect', 'use', 'destroy'])
  t.same(peers, ['redis'], 'its name has a place of its own')
  const { lookup: _, ...times } = dialing('redis', 1000)
  t.match(world.made?.options, {
    username: 'u',
    socket: { host: 'a', port: 7, connectTimeout: 1000, reconnectStrategy: false, ...times },
  })
  const { options } = world.made as unknown as { options: { socket: { lookup: unknown } } }
  t.equal(options.socket.lookup, noLookup)
  world.isOpen = false
  await withConnection({}, 1000, async () => world.log.push('use'))
  t.same(world.log.slice(3), ['connect', 'use'], 'one that is closed already is left')
})

await test('a connection for one use is closed where it fails, or is late', async (t) => {
  const world = usesOf(t)
  const fault = new Error('fault')
  await t.rejects(
    withConnection({}, 1000, () => Promise.reject(fault)),
    fault,
  )
  t.same(world.log.splice(0), ['connect', 'destroy'])
  world.opening = () => Promise.reject(fault)
  await t.rejects(
    withConnection({}, 1000, async () => world.log.push('use')),
    fault,
  )
  t.same(world.log.splice(0), ['connect', 'destroy'])
  world.opening = () => new Promise(() => undefined)
  const limit = new HeldTimers(t, 'setTimeout', 1000)
  const late = withConnection({}, 1000, async () => undefined)
  late.catch(() => undefined)
  limit.run()
  await t.rejects(late, { code: 'ETIMEDOUT' })
  t.same(world.log, ['connect', 'destroy'])
})
