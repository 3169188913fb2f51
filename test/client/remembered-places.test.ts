import { test } from 'tap'
import { failure } from '../support/client/page-client.ts'
import { NOW, PLACE, rememberingPage } from '../support/client/remembering-core.ts'
import { replace } from '../support/time/replace.ts'

await test('forget() and renew() change what is kept only while it is the key of their own call', async (t) => {
  const { order, kept, keptOrder, world } = rememberingPage(t)
  const early = order()
  await early.remembered.forget()
  await early.remembered.renew()
  t.equal(kept.size, 0, 'nothing was chosen')
  await early.choose('one')
  const equal = order()
  await equal.choose('two')
  world.now += 10
  await equal.remembered.renew()
  t.same(keptOrder(), { key: 'one+', at: NOW + 10, session: 'A', subject: 'qrm3n6-1uar0mn' })
  await early.remembered.forget()
  await early.remembered.renew()
  t.match(keptOrder(), { key: 'one+', at: NOW + 10 })
  const later = order()
  t.equal(await later.choose('three'), 'one+')
  await later.remembered.forget()
  t.equal(kept.size, 0)
  await later.remembered.forget()
  await later.remembered.renew()
  t.equal(kept.size, 0)
})

await test('a page that may not use its storage, or whose storage holds no JSON, sends its orders all the same', async (t) => {
  const { order, kept, world } = rememberingPage(t)
  world.isStorageForbidden = true
  const forbidden = order()
  t.equal(await forbidden.choose('one'), 'one')
  t.equal(await forbidden.choose('two'), 'one', 'a repetition')
  await forbidden.remembered.forget()
  world.isStorageForbidden = false
  t.equal(kept.size, 0)
  kept.set(PLACE, '{')
  t.equal(await order().choose('three'), 'three')
})

await test('a key is chosen and forgotten under a lock of its place, and without one where a tab that sleeps keeps it', async (t) => {
  const { order, kept } = rememberingPage(t)
  const asked: unknown[] = []
  let isHeld = false
  const request = async (name: string, { signal }: { signal: AbortSignal }, act: () => unknown): Promise<unknown> => {
    asked.push([name, signal.aborted, kept.size])
    if (isHeld) throw new Error('TimeoutError')
    const result = act()
    asked.push(kept.size)
    return result
  }
  replace(t, globalThis, 'navigator', { locks: { request } })
  const own = order()
  t.equal(await own.choose('one'), 'one')
  t.same(asked, [[PLACE, false, 0], 1])
  await own.remembered.forget()
  t.same(asked.slice(2), [[PLACE, false, 1], 0])
  isHeld = true
  t.equal(await order().choose('two'), 'two')
  t.equal(kept.size, 1)
  for (const navigator of [undefined, {}]) {
    replace(t, globalThis, 'navigator', navigator)
    t.equal(await order().choose('three'), 'two', 'nor where a page has no locks')
  }
})

await test('what fails under a lock is not tried again without one', async (t) => {
  const { order, world } = rememberingPage(t)
  world.session = undefined
  let acts = 0
  const request = async (_name: string, _options: object, act: () => unknown): Promise<unknown> => {
    acts++
    return act()
  }
  replace(t, globalThis, 'navigator', { locks: { request } })
  t.match(await failure(order().choose('one')), { code: 'not_sent' })
  t.equal(acts, 1)
})

await test('a lock is waited for a second', async (t) => {
  const { order } = rememberingPage(t)
  const waits: number[] = []
  replace(t, AbortSignal, 'timeout', (ms: number) => {
    waits.push(ms)
    return new AbortController().signal
  })
  const asked: string[] = []
  const request = async (name: string, _options: object, act: () => unknown): Promise<unknown> => {
    asked.push(name)
    return act()
  }
  replace(t, globalThis, 'navigator', { locks: { request } })
  await order().choose('one')
  t.same([waits, asked], [[1000], [PLACE]])
})
