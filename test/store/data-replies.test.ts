import { test } from 'tap'
import { CONFIRMABLE, DATA } from '../../src/store/data-commands.ts'
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
  for (const [key, mark, expected] of [
    ['key', 'mark', { isKnown: true, value: undefined }],
    ['key', '', { isKnown: false, value: 'mark text' }],
    ['key', 'mar', { isKnown: false, value: 'mark text' }],
    ['none', 'mark', { isKnown: false, value: undefined }],
  ] as const) {
    const { now, ...read } = DATA.readMarked.memory(values, key, mark) as { now: number }
    t.same(read, expected)
    t.type(now, 'number')
  }
  t.end()
})

await test('replicas can confirm that a value was created or replaced', (t) => {
  t.same(Object.keys(CONFIRMABLE), ['create', 'replace'])
  t.equal(CONFIRMABLE.create, DATA.create)
  t.equal(CONFIRMABLE.replace, DATA.replace)
  t.end()
})
