import { test, type Test } from 'tap'
import { becomePage, WalkedPage, type PageStep } from '../support/client/walked-page.ts'

// In a process of its own: the page that it walks through is that of the whole process.

becomePage()

/** A page whose user is logged in, and what it does. No socket for prices has anything to do with it. */
async function loggedIn(t: Test, { leads = true, socket = true, lifeSeconds = 36_000 } = {}) {
  t.intercept(Math, 'random', { value: () => 0.5 })
  const page = new WalkedPage(!leads)
  t.teardown(() => page.client.close())
  page.lifeSeconds = lifeSeconds
  const { session } = page.client
  const step = (each: PageStep): Promise<void> => page.step(each)
  /** Lets time pass. @returns after how many seconds of it the session was asked for, which is answered */
  const pass = async (seconds: number): Promise<number[]> => {
    const asked: number[] = []
    for (let passed = 1; passed <= seconds; passed++) {
      const { calls } = page
      await step({ is: 'time', ms: 1000 })
      if (page.calls > calls) asked.push(passed)
      await step({ is: 'answer', how: 'true' })
    }
    return asked
  }
  await step({ is: 'session', to: 'log in' })
  await step({ is: 'answer', how: 'true' })
  if (!socket) await step({ is: 'refuse' })
  await step({ is: 'call', what: 'subscribe' })
  if (!socket) await step({ is: 'refuse' })
  await step({ is: 'answer', how: 'true' })
  t.equal(session.get().status, 'active')
  if (leads && socket) await step({ is: 'socket', how: 'opens' })
  return { page, session, step, pass }
}

await test('the session is asked for every 5 minutes while its socket is open, or another tab has one', async (t) => {
  for (const leads of [true, false]) {
    const { pass, page } = await loggedIn(t, { leads })
    t.equal(page.socketsTo('/ws/session'), Number(leads))
    t.same(await pass(601), [300, 600], leads ? 'its own socket' : 'that of another tab')
  }
})

await test('without a socket the session is asked for every 30 seconds, and the socket is tried each time', async (t) => {
  const { pass, page, step } = await loggedIn(t, { socket: false })
  t.equal(page.socketsTo('/ws/session'), 0)
  t.same(await pass(29), [])
  await step({ is: 'refuse' })
  t.same(await pass(1), [1])
  t.same(await pass(30), [30])
  t.equal(page.socketsTo('/ws/session'), 1)
})

await test('a session that ends within a minute is expiring, which a page learns a second after it begins', async (t) => {
  const { pass, session, page } = await loggedIn(t, { lifeSeconds: 100 })
  t.match(session.get(), { expiring: undefined })
  page.lifeSeconds = 60
  t.same(await pass(41), [41])
  t.match(session.get(), { expiring: 'absolute' })
  t.same(await pass(61), [61], 'and again when it is over')
  page.idleSeconds = 59
  t.same(await pass(61), [61])
  t.match(session.get(), { expiring: 'idle', idleExpiresAt: Date.now() + 59_000 })
})

await test('a session socket that closes is opened again later and later, and after 4429 in 5 minutes', async (t) => {
  for (const [code, reason, waits] of [
    [1006, '', [1, 1, 2, 4]],
    [1012, 'restart;retry_after=20', [21, 21, 22, 24]],
    [4429, '', [30, 30]],
  ] as const) {
    const { pass, page, step } = await loggedIn(t)
    for (const wait of waits) {
      await step({ is: 'close', code, reason })
      t.equal(page.socketsTo('/ws/session'), 0)
      t.same((await pass(wait)).at(-1), wait, `${code} ${reason}`)
      t.equal(page.socketsTo('/ws/session'), code === 4429 ? 0 : 1)
      if (code === 4429) break
    }
    if (code !== 4429) continue
    t.same(await pass(269), [30, 60, 90, 120, 150, 180, 210, 240])
    t.equal(page.socketsTo('/ws/session'), 0)
    await pass(1)
    t.equal(page.socketsTo('/ws/session'), 1)
  }
})

await test('a session socket that closes as soon as it has told the session is opened later and later, until one lasts', async (t) => {
  const { pass, page, step } = await loggedIn(t)
  for (const wait of [1, 1, 2, 4, 8]) {
    await step({ is: 'close', code: 1011, reason: '' })
    t.same((await pass(wait)).at(-1), wait)
    await step({ is: 'socket', how: 'opens' })
    t.equal(page.socketsTo('/ws/session'), 1)
  }
  await pass(11)
  await step({ is: 'close', code: 1011, reason: '' })
  t.same(await pass(1), [1])
})

await test('the end of a session that anybody may have replaced is believed after four checks, 600 ms apart', async (t) => {
  const { page, session, step } = await loggedIn(t)
  await step({ is: 'session', to: 'log out' })
  await step({ is: 'close', code: 4401, reason: '' })
  for (let checks = 1; checks <= 4; checks++) {
    const { calls } = page
    t.equal(session.get().status, 'active')
    await step({ is: 'answer', how: 'true' })
    if (checks === 4) break
    await step({ is: 'time', ms: 599 })
    t.equal(page.calls, calls)
    await step({ is: 'time', ms: 1 })
    t.equal(page.calls, calls + 1)
  }
  t.match(session.get(), { status: 'anonymous' })
})

await test('a server that cannot tell is asked again after a second, then later and later', async (t) => {
  const { page, session, step } = await loggedIn(t)
  void session.check()
  for (const waitMs of [1000, 2000, 4000, 8000, 15_000, 15_000]) {
    await step({ is: 'answer', how: 'proxy' })
    t.match(session.get(), { status: 'unavailable', last: { status: 'active' } })
    const { calls } = page
    for (let left = waitMs - 1; left > 0; left -= 1000) await step({ is: 'time', ms: Math.min(left, 1000) })
    t.equal(page.calls, calls)
    await step({ is: 'time', ms: 1 })
    t.equal(page.calls, calls + 1, `${waitMs} ms`)
  }
})

await test('the times of a session follow the clock of the server once it differs by 2 seconds from what it was', async (t) => {
  const { page, session, step } = await loggedIn(t)
  const check = async (): Promise<number> => {
    void session.check()
    await step({ is: 'answer', how: 'true' })
    const state = session.get()
    return state.status === 'active' ? state.expiresAt : NaN
  }
  const before = await check()
  page.aheadSeconds = 1
  t.equal(await check(), before + 1000, 'a second more of the clock that was known')
  page.aheadSeconds = 2
  t.equal(await check(), before)
  page.aheadSeconds = -7200
  t.equal(await check(), before, 'a clock that is wrong by hours changes nothing')
})

await test('a machine that has slept for more than 2 minutes asks at once, and opens its socket again', async (t) => {
  const { now } = Date
  let sleptMs = 0
  t.intercept(Date, 'now', { value: () => Reflect.apply(now, Date, []) + sleptMs })
  for (const [ms, isNew] of [
    [110_000, false],
    [120_000, true],
  ] as const) {
    const { page, pass } = await loggedIn(t)
    const before = [...page.sockets].find(({ path }) => path === '/ws/session')
    sleptMs += ms
    t.same(await pass(5), isNew ? [5] : [], `${ms} ms`)
    t.equal(page.sockets.has(before as never), !isNew)
  }
})
