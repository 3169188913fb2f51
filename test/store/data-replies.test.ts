import { setImmediate as turn } from 'node:timers/promises'
import { ErrorReply } from '@redis/client'
import { test, type Test } from 'tap'
import { CONFIRMABLE, DATA } from '../../src/store/data-commands.ts'
import { ENDED_CHANNEL, LEFT_MS } from '../../src/store/keys.ts'
import { MemoryValues } from '../../src/store/memory-values.ts'

/** What is sent to Redis, whose clock is 30 ms ahead. */
function sentBy(send: (redis: never, skewMs: () => number) => unknown): readonly unknown[] {
  const sent: unknown[] = []
  const redis = {
    send: (key: string, words: readonly unknown[], hasBytes?: boolean) => {
      sent.push(key, words.slice(words[0] === 'EVAL' ? 2 : 0), hasBytes)
      return Promise.resolve()
    },
  }
  send(redis as never, () => 30)
  return sent
}

await test('a stored value is read as it was written, with its expiry by the clock of the store, if it has one', (t) => {
  const commands = DATA as unknown as Record<
    string,
    { reply(reply: unknown, skewMs: () => number, key: string): unknown }
  >
  for (const name of ['read', 'readUntracked', 'extend']) {
    for (const [reply, expected] of [
      [['text', 1000], { value: 'text', expiresAt: 970 }],
      [['', 0], { value: '', expiresAt: -30 }],
      [[Buffer.from([0xe9, 0x41]), 1000], { value: 'éA', expiresAt: 970 }],
      [[null, 1000], undefined],
      [['without an expiry', -1], undefined],
      [[null, -2], undefined],
    ] as const) {
      t.same(
        commands[name]?.reply(reply, () => 30, 'key'),
        expected,
      )
    }
  }
  t.end()
})

await test('a value goes out as a text if it is one of ASCII, and otherwise with a byte for each character', (t) => {
  for (const [value, bytes] of [
    ['plain ~', 'plain ~'],
    ['', ''],
    ['é', Buffer.from([0xe9])],
    ['aé', Buffer.from([0x61, 0xe9])],
    ['éa', Buffer.from([0xe9, 0x61])],
    ['a\n', Buffer.from('a\n')],
  ] as const) {
    const created = sentBy((redis, skewMs) => DATA.create.send(redis, skewMs, 'key', value, 1000))
    t.same(created, ['key', ['SET', 'key', bytes, 'PXAT', '1030', 'NX'], undefined])
    const replaced = sentBy((redis, skewMs) => DATA.replace.send(redis, skewMs, 'key', value, value, 1000))
    t.same(replaced, ['key', ['1', 'key', bytes, bytes, '1030'], undefined])
    const kept = sentBy((redis, skewMs) => DATA.replace.send(redis, skewMs, 'key', value, value))
    t.same(kept, ['key', ['1', 'key', bytes, bytes], undefined])
    t.same(
      sentBy((redis, skewMs) => DATA.removeIf.send(redis, skewMs, 'key', value)),
      ['key', ['1', 'key', bytes], undefined],
    )
  }
  const read = sentBy((redis, skewMs) => DATA.readUntracked.send(redis, skewMs, 'key'))
  t.same(read, ['key', ['1', 'key'], true], 'its reply is bytes')
  t.end()
})

await test('a marked value in memory is not read again where its mark is known', (t) => {
  const values = new MemoryValues(() => undefined)
  values.write('key', 'mark text', Date.now() + 60_000)
  values.write('blank', ' text', Date.now() + 60_000)
  for (const [key, mark, expected] of [
    ['key', 'mark', { isKnown: true, value: undefined }],
    ['key', '', { isKnown: false, value: 'mark text' }],
    ['key', 'mar', { isKnown: false, value: 'mark text' }],
    ['blank', '', { isKnown: false, value: ' text' }],
    ['none', 'mark', { isKnown: false, value: undefined }],
  ] as const) {
    const { now, ...read } = DATA.readMarked.memory(values, key, mark) as { now: number }
    t.same(read, expected)
    t.type(now, 'number')
  }
  t.end()
})

await test('a refusal is told beside what is read, and a count counts on a full server only where it is to', (t) => {
  t.equal(DATA.extend.refusal?.(['value', 1, 'READONLY no'] as never), 'READONLY no')
  t.equal(DATA.extend.refusal?.(['value', 1] as never), null)
  for (const isEvenWhenFull of [undefined, false, true]) {
    let script = ''
    const redis = { send: async (_key: string, words: readonly string[]) => void (script = words[1] ?? '') }
    void DATA.count.send(redis as never, () => 0, 'key', 1, 1000, isEvenWhenFull)
    t.equal(script.startsWith('#!lua flags=allow-oom'), isEvenWhenFull === true)
  }
  t.end()
})

await test('what a server would be told of in vain is not tracked', (t) => {
  const untracked = Object.entries(DATA).filter(([, command]) => 'isUntracked' in command && command.isUntracked)
  t.same(
    untracked.map(([name]) => name),
    ['readUntracked', 'readMany', 'bury', 'readMarked', 'replaceMarked'],
  )
  t.end()
})

/** A Cluster whose slot of the session is just moving: it runs no script on several keys. It is sent one command after another. */
function movingSlot(t: Test, { values = new Map([['key', 'text']]), code = 'TRYAGAIN', publishes = true } = {}) {
  const world = { log: [] as unknown[][], isBusy: false, beforeRemoval: (): void => undefined }
  const run = (words: readonly string[]): unknown => {
    const [name, script = '', count, key = '', ...more] = words
    if (name === 'GET') return values.get(script) ?? null
    if (name === 'PUBLISH') return publishes || Promise.reject(new ErrorReply('NOPERM no'))
    if (count !== '1') throw new ErrorReply(`${code} no`)
    if (more.length === 3) return values.set(key, more[0] ?? '') && 'OK'
    world.beforeRemoval()
    return values.get(key) === more[0] && values.delete(key) ? 1 : 0
  }
  const send = async (...[key, words]: [string, readonly string[]]) => {
    t.notOk(world.isBusy)
    if (world.log.length > 20) throw new Error('it never ends')
    world.isBusy = true
    await turn()
    world.isBusy = false
    world.log.push([key, ...words.filter((word) => !word.includes('redis.call'))])
    return run(words)
  }
  const lot = { key: 'tombstone', leftKey: 'left', value: 'logout', expiresAt: 1000 }
  const bury = async () => DATA.bury.send({ send } as never, () => 30, 'key', lot)
  return { world, values, bury }
}

await test('a session ends step by step where its slot is moving, and its end is told last', async (t) => {
  const { world, values, bury } = movingSlot(t)
  t.equal(await bury(), 'logout text')
  t.notOk(world.isBusy)
  t.same(world.log.slice(1), [
    ['key', 'GET', 'key'],
    ['tombstone', 'EVAL', '1', 'tombstone', 'logout', 'PXAT', '1030'],
    ['left', 'EVAL', '1', 'left', 'logout text', 'PX', String(LEFT_MS)],
    ['key', 'EVAL', '1', 'key', 'text'],
    ['key', 'PUBLISH', ENDED_CHANNEL, 'key logout'],
  ])
  t.same(Object.fromEntries(values), { tombstone: 'logout', left: 'logout text' })
})

await test('a session that changes meanwhile, or is gone, leaves its newest value', async (t) => {
  const { world, values, bury } = movingSlot(t, { publishes: false })
  world.beforeRemoval = () => {
    world.beforeRemoval = () => undefined
    values.set('key', 'newer')
  }
  t.equal(await bury(), 'logout newer')
  t.same(Object.fromEntries(values), { tombstone: 'logout', left: 'logout newer' })
  t.equal(await bury(), 'logout newer')
  t.equal(await movingSlot(t, { values: new Map() }).bury(), null)
  await t.rejects(movingSlot(t, { code: 'CLUSTERDOWN' }).bury(), { message: 'CLUSTERDOWN no' })
})

await test('replicas can confirm that a value was created or replaced', (t) => {
  t.same(Object.keys(CONFIRMABLE), ['create', 'replace'])
  t.equal(CONFIRMABLE.create, DATA.create)
  t.equal(CONFIRMABLE.replace, DATA.replace)
  t.end()
})
