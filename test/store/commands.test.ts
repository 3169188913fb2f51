import { isDeepStrictEqual } from 'node:util'
import * as fc from 'fast-check'
import { test } from 'tap'
import { DATA } from '../../src/store/data-commands.ts'
import { INDEX } from '../../src/store/index-commands.ts'
import { besideKey } from '../../src/store/keys.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import type { SessionIndex } from '../../src/store/session-index.ts'
import { StoreUnavailable, type DataCommands } from '../../src/store/store.ts'
import { connectedStore } from '../support/redis/connected-store.ts'
import { testRedis } from '../support/server/test-server.ts'

const MINUTE_MS = 60_000

/** Random arguments for each command of a table. */
type ArgumentsOf<Methods> = {
  readonly [Name in keyof Methods]: Methods[Name] extends (...args: infer Args) => unknown ? fc.Arbitrary<Args> : never
}

const startedAt = Date.now()
const key = fc.constantFrom('a', 'b')
/** Numbers, since each of them may be counted up. */
const value = fc.constantFrom('3', '4', '5')
const expiresAt = fc.constantFrom(1, 2, 3).map((minutes) => startedAt + minutes * MINUTE_MS)
const ttlMs = fc.constantFrom(MINUTE_MS, 2 * MINUTE_MS)

/** Others than those that are counted up. */
const markedKey = fc.constantFrom('c', 'd')
const news = fc.constant({ channel: 'news', text: 'changed' })

const DATA_ARGUMENTS: ArgumentsOf<DataCommands> = {
  create: fc.tuple(key, value, expiresAt),
  lock: fc.tuple(key, value, ttlMs),
  read: fc.tuple(key),
  readUntracked: fc.tuple(key),
  readMany: fc.tuple(fc.array(key, { maxLength: 3 })),
  replace: fc.oneof(fc.tuple(key, value, value, expiresAt), fc.tuple(key, value, value)),
  extend: fc.tuple(key, expiresAt),
  remove: fc.tuple(key),
  removeIf: fc.tuple(key, value),
  bury: fc
    .tuple(key, value, expiresAt)
    .map(([key, value, expiresAt]) => [
      key,
      { key: besideKey(key, 'tombstone'), leftKey: besideKey(key, 'left'), value, expiresAt },
    ]),
  count: fc.tuple(key, fc.nat({ max: 5 }), ttlMs, fc.boolean()),
  readMarked: fc.tuple(markedKey, fc.constantFrom('', '3', '4', '5')),
  replaceMarked: fc.tuple(
    markedKey,
    fc.constantFrom('', '3', '4', '5'),
    value.map((mark) => `${mark} text`),
    ttlMs,
    news,
  ),
}

const oneId = fc.integer({ min: 1, max: 5 }).map((number) => `id${number}`)
const ids = fc.uniqueArray(oneId)
const entry = fc.record({ id: oneId, value: fc.constantFrom('v', 'w'), expiresAt })
/** In a time to come, so that both stores compute the times of the next ones from it. */
const after = fc.constantFrom(1, 2).map((hours) => startedAt + hours * 60 * MINUTE_MS)

const INDEX_ARGUMENTS: ArgumentsOf<SessionIndex> = {
  add: fc.tuple(key, entry, after),
  list: fc.tuple(key),
  endAll: fc.tuple(key),
  endIssued: fc.tuple(key, fc.constantFrom('issued', 'sidless'), fc.constantFrom(7, 8.5)),
  end: fc.tuple(key, ids),
  remove: fc.tuple(key, ids),
  look: fc.tuple(key, oneId),
}

/** A reply as plain data, in which times of about the same are equal. */
function plain(reply: unknown): unknown {
  const text = JSON.stringify([reply], (name, value: unknown) => {
    if (name === 'expiresAt') return Math.round((Number(value) - startedAt) / MINUTE_MS)
    if (name === 'now') return Math.abs(Number(value) - Date.now()) < MINUTE_MS
    return name === 'endedAgoMs' ? Number(value) < MINUTE_MS : value
  })
  return JSON.parse(text)
}

type Methods = Readonly<Record<string, (...args: unknown[]) => Promise<unknown>>>

/** Calls both at once, and throws when they reply differently. The text before the names of keys is new for each run. */
async function compare(name: string, args: readonly unknown[], stores: readonly Methods[], run: number): Promise<void> {
  const named = JSON.parse(JSON.stringify(args), (_name, text: unknown) =>
    typeof text === 'string' ? text.replace(/^(\{?)(?=[a-d]\b)/, `$1bff:1:run${run}:`) : text,
  ) as unknown[]
  const [one, other] = await Promise.all(stores.map(async (store) => plain(await store[name]?.(...named))))
  if (isDeepStrictEqual(one, other)) return
  throw new Error(
    `${name}(${JSON.stringify(named)}): ${JSON.stringify(one)} in memory, ${JSON.stringify(other)} in Redis`,
  )
}

await test('every command means in memory what it does in Redis', async (t) => {
  const redis = await testRedis(t)
  const [memory, store] = [new MemoryStore(), await connectedStore(t, redis.url)]
  let run = 0
  for (const [table, commands, stores] of [
    [DATA_ARGUMENTS, DATA, [memory, store]],
    [INDEX_ARGUMENTS, INDEX, [await memory.openIndex(), await store.openIndex()]],
  ] as const) {
    const names = Object.keys(commands)
    t.same(Object.keys(table), names)
    const step = fc.oneof(
      ...Object.entries<fc.Arbitrary<readonly unknown[]>>(table).map(([name, args]) =>
        args.map((args) => ({ name, args })),
      ),
    )
    const called = new Set<string>()
    const sequences = fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 60 }), async (steps) => {
      run++
      const added = new Set<string>()
      for (const { name, args } of steps) {
        // An id is unique within its key.
        const place = JSON.stringify([args[0], (args[1] as { id?: string } | undefined)?.id])
        if (name === 'add' && added.has(place)) continue
        added.add(place)
        called.add(name)
        await compare(name, args, stores as unknown as Methods[], run)
      }
    })
    await fc.assert(sequences, { numRuns: 60 })
    t.same([...called].toSorted(), names.toSorted())
  }
})

await test('a store tells its own listeners what a command has changed, and that a key which it asks for is gone', async (t) => {
  const { url } = await testRedis(t)
  const store = await connectedStore(t, url)
  const told: unknown[] = []
  store.onChange((key) => told.push(key))
  const soon = startedAt + MINUTE_MS
  const calls: readonly [name: keyof DataCommands, isThere: boolean, call: (key: string) => Promise<unknown>][] = [
    ['replace', true, (key) => store.replace(key, 'v', 'w', soon)],
    ['remove', true, (key) => store.remove(key)],
    ['removeIf', true, (key) => store.removeIf(key, 'v')],
    [
      'bury',
      true,
      (key) => store.bury(key, { key: `${key} gone`, leftKey: `${key} left`, value: 'x', expiresAt: soon }),
    ],
    ['read', false, (key) => store.read(key)],
    ['readUntracked', false, (key) => store.readUntracked(key)],
    ['extend', false, (key) => store.extend(key, soon)],
  ]
  for (const [name, isThere, call] of calls) {
    if (isThere) await store.create(name, 'v', soon)
    told.length = 0
    await call(name)
    t.ok(told.includes(name), name)
  }
})

await test('nothing is asked of Redis where there is nothing to ask', async (t) => {
  const { url } = await testRedis(t)
  const store = await connectedStore(t, url)
  const index = await store.openIndex()
  await store.close()
  t.same(await store.readMany([]), [])
  await t.resolves(index.end('key', []))
  await t.resolves(index.remove('key', []))
  await t.rejects(index.remove('key', ['id']), StoreUnavailable)
})
