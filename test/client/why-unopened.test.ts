import { test } from 'tap'
import { shown } from '../support/client/shown-page.ts'
import { becomePage } from '../support/client/walked-page.ts'

// In a process of its own: the page that it walks through is that of the whole process.

becomePage()

/** A page whose connections do not open. */
function unopened(...[t]: Parameters<typeof shown>) {
  const world = shown(t)
  const { page, step, pass, lose, waitsMs } = world
  /** Fails so many attempts, and waits for the next one after each but the last. */
  const fail = async (attempts: number): Promise<void> => {
    for (let attempt = 1; ; attempt++) {
      await step({ is: 'time', ms: 0 })
      await lose(1006)
      if (attempt === attempts) return
      await pass(waitsMs())
    }
  }
  return { ...world, fail, status: () => page.socket.status() }
}

const WAITING = { state: 'waiting', code: 1006, reason: '' }
const REJECTED = { ...WAITING, reason: 'origin_rejected' }

await test('a page asks why no connection opens after the third attempt, and after every eighth from then on', async (t) => {
  const { page, step, pass, waitsMs, state, status, fail } = unopened(t)
  await fail(2)
  t.same([page.asked.length, status().reason], [0, ''])
  await pass(waitsMs())
  await fail(1)
  t.match(page.asked, [{ path: '/ws/public', init: { credentials: 'omit' } }])
  t.notOk(page.asked[0]?.init.headers, 'a header could need a preflight')
  t.match(status(), { ...WAITING, retryAt: undefined }, 'it waits for the answer')
  await step({ is: 'answer', how: 'rejected' })
  t.match(status(), REJECTED)
  t.ok(waitsMs() > 0, 'and then for the next attempt')
  for (let attempt = 4; attempt <= 10; attempt++) {
    await pass(waitsMs())
    t.equal(state(), 'connecting')
    await fail(1)
    t.match(status(), REJECTED)
    t.equal(page.asked.length, 1)
  }
  await pass(waitsMs())
  await fail(1)
  t.equal(page.asked.length, 2)
  await step({ is: 'answer', how: 'ends' })
  t.match(status(), REJECTED, 'without an answer, it is still the last word')
  await pass(waitsMs())
  await fail(8)
  t.equal(page.asked.length, 3)
  await step({ is: 'answer', how: 'true' })
  t.match(status(), WAITING, 'another answer says that the origin is listed')
})

await test('any other answer than that the origin is not listed is no reason', async (t) => {
  for (const how of ['ends', 'true', 'proxy'] as const) {
    const { step, waitsMs, status, fail } = unopened(t)
    await fail(3)
    await step({ is: 'answer', how })
    t.match(status(), WAITING, how)
    t.ok(waitsMs() > 0)
  }
})

await test('an origin that is listed meanwhile is no reason any more', async (t) => {
  const { page, step, pass, waitsMs, works, lose, status, fail } = unopened(t)
  await fail(3)
  await step({ is: 'answer', how: 'rejected' })
  await pass(waitsMs())
  await works()
  t.equal(status().reason, undefined)
  await lose(1006)
  t.match(status(), WAITING)
  t.equal(page.asked.length, 1)
})

await test('what the server closes, and what has worked, it is not asked about', async (t) => {
  const { page, step, pass, waitsMs, works, lose } = unopened(t)
  await step({ is: 'time', ms: 0 })
  for (const code of [1013, 1013, 4429, 1012, 1006, 1006, 1006, 1006]) {
    if (code === 1006) await works()
    else await step({ is: 'socket', how: 'opens' })
    await lose(code)
    await pass(waitsMs())
  }
  t.same(page.asked, [])
})

await test('a page that is offline does not ask', async (t) => {
  const { page, step, pass, waitsMs, lose, fail } = unopened(t)
  await fail(2)
  await pass(waitsMs())
  await step({ is: 'page', event: 'offline' })
  await lose(1006)
  t.same(page.asked, [])
  t.ok(waitsMs() > 0)
})

await test('a socket that its page closes asks no more, and keeps its status whatever the answer', async (t) => {
  const early = unopened(t)
  await early.fail(2)
  await early.pass(early.waitsMs())
  early.page.socket.onStatus(() => early.state() === 'waiting' && early.page.client.close())
  await early.lose(1006)
  t.same(early.page.asked, [])
  t.equal(early.state(), 'ended')
  for (const how of ['rejected', 'ends'] as const) {
    const { page, step, pass, status, fail } = unopened(t)
    await fail(3)
    page.client.close()
    await step({ is: 'answer', how })
    t.match(status(), { state: 'ended', code: 1000, reason: '' })
    await pass(60_000)
    t.same([page.asked.length, page.sockets.size], [1, 0])
  }
})

await test('an answer that comes when the page already tries again says nothing', async (t) => {
  const { page, step, pass, waitsMs, works, status, fail, lose } = unopened(t)
  await fail(3)
  await step({ is: 'page', event: 'online' })
  await pass(waitsMs())
  await works()
  const before = status()
  t.equal(before.state, 'open')
  await step({ is: 'answer', how: 'rejected' })
  t.equal(status(), before)
  await lose(1006)
  t.match(status(), WAITING)
  t.equal(page.asked.length, 1)
})
