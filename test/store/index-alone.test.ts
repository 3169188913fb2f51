import { test, type Test } from 'tap'
import { INDEX, memoryIndexes } from '../../src/store/index-commands.ts'
import type { SessionIndex } from '../../src/store/session-index.ts'
import { stoppedClocks } from '../support/time/stopped-clocks.ts'

type Name = keyof SessionIndex
type AnyCommand = {
  send(redis: unknown, skewMs: () => number, ...args: unknown[]): Promise<unknown>
  reply(reply: unknown, skewMs: () => number, ...args: unknown[]): unknown
  memory(memory: unknown, ...args: unknown[]): unknown
  known?(...args: unknown[]): unknown
}
const commands = INDEX as unknown as Readonly<Record<Name, AnyCommand>>
const SKEW = (): number => 30

/** The words of a command, without the text of its script. */
async function sent(name: Name, ...args: unknown[]): Promise<unknown> {
  const redis = { send: async (key: string, [, , ...words]: unknown[]) => [key, ...words] }
  return commands[name].send(redis, SKEW, ...args)
}

await test('times go out by the clock of the master, and each command under its key', async (t) => {
  const entry = { id: 'a', value: 'v', expiresAt: 1000 }
  t.same(await sent('add', 'k', entry, 7), ['k', '1', 'k', 'a', 'v', '1030', '7'])
  for (const name of ['list', 'endAll'] as const) t.same(await sent(name, 'k'), ['k', '1', 'k'])
  t.same(await sent('endIssued', 'k', 'issued', 8.5), ['k', '1', 'k', 'issued', '8.5'])
  for (const name of ['end', 'remove'] as const) t.same(await sent(name, 'k', ['a', 'b']), ['k', '1', 'k', 'a', 'b'])
  t.same(await sent('look', 'k', 'a'), ['k', '1', 'k', 'a'])
})

await test('a list has the entries that have not expired, the oldest first, by the clock of the store', (t) => {
  const fields = ['c', '30 1031 w', 'ended', '500', 'a', '10 1001 v ended', 'b', '20 1000 v', 'issued', '8']
  for (const name of ['list', 'endAll', 'endIssued'] as const) {
    t.same(commands[name].reply([1000, fields], SKEW, 'k'), [
      { id: 'a', value: 'v', addedAt: 10, expiresAt: 971 },
      { id: 'c', value: 'w', addedAt: 30, expiresAt: 1001 },
    ])
  }
  t.same(commands.list.reply([1000, []], SKEW, 'k'), [])
  t.equal(commands.add.reply(3, SKEW), 3)
  for (const name of ['end', 'remove'] as const) t.equal(commands[name].reply('', SKEW), undefined)
  t.end()
})

const look = (...reply: unknown[]) => commands.look.reply([1_000_000, ...reply], SKEW, 'k', 'a')

await test('a look tells whether an entry is there, when all were ended, and until when those were issued that were', (t) => {
  const never = { issued: -Infinity, sidless: -Infinity }
  t.same(look('1 2 v', null, null, null), { isListed: true, endedAgoMs: undefined, endedUntil: never })
  t.same(look('1 2 v ended', '400001', '8', '9.5'), {
    isListed: false,
    endedAgoMs: 599_999,
    endedUntil: { issued: 8, sidless: 9.5 },
  })
  t.same(look(null, '400000', null, null), { isListed: false, endedAgoMs: undefined, endedUntil: never })
  t.end()
})

await test('Redis need not watch an index, since nothing is kept of it here', (t) => {
  for (const [name, { isUntracked }] of Object.entries(INDEX)) t.equal(isUntracked, true, name)
  t.end()
})

await test('nothing is asked where no entries are named', (t) => {
  for (const name of ['end', 'remove'] as const) {
    t.same(commands[name].known?.('k', []), { reply: undefined })
    t.equal(commands[name].known?.('k', ['a']), undefined)
  }
  t.end()
})

/** An index in memory, and the way to let time pass. */
function indexOf(t: Test) {
  const pass = stoppedClocks(t)
  const indexes = memoryIndexes()
  const call = (name: Name, ...args: unknown[]): unknown => commands[name].memory(indexes, ...args)
  const add = (id: string, lastsMs = 1000, after = 0, key = 'k') =>
    call('add', key, { id, value: 'v', expiresAt: Date.now() + lastsMs }, after)
  const list = (key = 'k') => (call('list', key) as { id: string; addedAt: number }[]).map(({ id }) => id)
  return { pass, call, add, list }
}

await test('in memory each entry is newer than those before it, and than one of another key', (t) => {
  const { call, add, list } = indexOf(t)
  const now = Date.now()
  t.same([add('a'), add('b'), add('c', 1000, now + 500), add('d')], [1, 2, 3, 4])
  const entries = call('list', 'k') as { addedAt: number }[]
  t.same(
    entries.map(({ addedAt }) => addedAt - now),
    [0, 1, 501, 502],
  )
  t.match(entries[0], { id: 'a', value: 'v', expiresAt: now + 1000 })
  t.same([list('other'), add('x', 1000, 0, 'other')], [[], 1])
  t.end()
})

await test('in memory an entry that has expired does not count, and is forgotten', (t) => {
  const { pass, call, add, list } = indexOf(t)
  add('a', 10)
  add('b', 20)
  call('end', 'k', ['a'])
  pass(9)
  t.same(list(), ['a', 'b'])
  pass(1)
  t.same(list(), ['b'])
  t.equal(add('c', 50), 2)
  t.equal(add('a', 50), 3)
  t.match(call('look', 'k', 'a'), { isListed: true }, 'one that comes later with the same name has not ended')
  t.end()
})

await test('in memory entries end one by one, or all at once for ten minutes, and none is removed by that', (t) => {
  const { pass, call, add, list } = indexOf(t)
  const never = { issued: -Infinity, sidless: -Infinity }
  for (const id of ['a', 'b']) add(id, 3_600_000)
  t.same(call('look', 'k', 'a'), { isListed: true, endedAgoMs: undefined, endedUntil: never })
  t.equal(call('end', 'k', ['a', 'x']), undefined)
  t.same(
    ['a', 'b', 'x'].map((id) => (call('look', 'k', id) as { isListed: boolean }).isListed),
    [false, true, false],
  )
  add('x', 3_600_000)
  t.match(call('look', 'k', 'x'), { isListed: true }, 'what was ended before it was there does not matter')
  t.equal((call('endAll', 'k') as unknown[]).length, 3)
  pass(599_999)
  t.match(call('look', 'k', 'b'), { isListed: true, endedAgoMs: 599_999 })
  pass(1)
  t.match(call('look', 'k', 'b'), { isListed: true, endedAgoMs: undefined })
  t.equal(call('remove', 'k', ['a', 'b']), undefined)
  t.same(list(), ['x'])
  t.match(call('look', 'other', 'x'), { endedAgoMs: undefined })
  t.end()
})

await test('in memory the latest time counts until which those were issued that have ended', (t) => {
  const { call, add } = indexOf(t)
  add('a')
  t.equal((call('endIssued', 'k', 'issued', 8) as unknown[]).length, 1)
  call('endIssued', 'k', 'issued', 7)
  call('endIssued', 'k', 'sidless', 9)
  const state = call('look', 'k', 'a') as { endedUntil: { issued: number } }
  t.same(state.endedUntil, { issued: 8, sidless: 9 })
  call('endIssued', 'k', 'issued', 10)
  t.equal(state.endedUntil.issued, 8, 'what was told does not change')
  t.end()
})
