import { test } from 'tap'
import type { Session } from '../../src/sessions/index.ts'
import type { OrderGate } from '../../src/sockets/relay/order-gate.ts'
import { relayUser, type RelayUser } from '../../src/sockets/relay/relay-user.ts'
import { standstill } from '../../src/time/standstill.ts'
import { isolatedRelay } from '../support/sockets/isolated-relay.ts'
import { clockAhead, timeAhead } from '../support/time/clock-ahead.ts'
import { until } from '../support/time/until.ts'

type Confirmation = Awaited<ReturnType<RelayUser['confirm']>>

/** A user whose session is not current until a test says so. */
function unknownUser() {
  const state = { isCurrent: false, asked: [] as ((confirmation: Confirmation) => void)[] }
  const user: RelayUser = {
    isCurrent: () => state.isCurrent,
    confirm: () => new Promise((resolve) => void state.asked.push(resolve)),
    onEnd: () => () => undefined,
  }
  const answer = async (confirmation: Confirmation): Promise<void> => {
    await until(() => state.asked.length > 0, 'the session is asked for')
    state.asked.shift()?.(confirmation)
  }
  return { state, user, answer }
}

async function relay(t: Parameters<typeof isolatedRelay>[0], user: RelayUser, gate?: OrderGate) {
  const world = await isolatedRelay(t, { heartbeatMs: 60_000 }, gate, user)
  const seen: string[] = []
  world.upstream.on('message', (data: Buffer) => seen.push(data.toString()))
  return { ...world, seen }
}

await test('messages wait for the session, in order, and are asked about again when they are released', async (t) => {
  const { state, user, answer } = unknownUser()
  let judged = 0
  const gate: OrderGate = {
    isClosed: true,
    // The identification takes a while, and the session is unknown again afterwards.
    judge: () => {
      if (judged++ > 0) return 'passes'
      state.isCurrent = false
      return Promise.resolve()
    },
    onClosed: () => () => undefined,
  }
  const { browser, seen } = await relay(t, user, gate)
  for (const message of ['1', '2', '3']) browser.send(message)
  await until(() => state.asked.length === 1)
  state.isCurrent = true
  await answer('asked')
  await until(() => state.asked.length === 1, 'it is asked for again')
  t.same(seen, [])
  state.isCurrent = true
  await answer('asked')
  await until(() => seen.length === 3)
  t.same(seen, ['1', '2', '3'])
})

await test('messages pass while the store is away, and the next one asks again', async (t) => {
  const { user, answer } = unknownUser()
  const { browser, seen } = await relay(t, user)
  for (const message of ['1', '2']) {
    browser.send(message)
    await answer('away')
    await until(() => seen.includes(message))
  }
  t.same(seen, ['1', '2'])
})

await test('a process that cannot hear discards what waits and closes the socket, and so does one that cannot hear in time', async (t) => {
  const pass = clockAhead(t)
  for (const answers of [['deaf'], ['asked', 'asked']] as const) {
    const { state, user, answer } = unknownUser()
    const { browser, seen, ended } = await relay(t, user)
    browser.send('1')
    for (const confirmation of answers) {
      await until(() => state.asked.length > 0, 'the session is asked for')
      pass(600)
      await answer(confirmation)
    }
    t.match(await ended, { code: 1013, reason: 'session_store_unavailable' })
    t.same(seen, [])
  }
})

await test('a session that was known again may be unknown for as long once more', async (t) => {
  const pass = clockAhead(t)
  const { state, user, answer } = unknownUser()
  const { browser, seen } = await relay(t, user)
  for (const message of ['1', '2']) {
    state.isCurrent = false
    browser.send(message)
    await until(() => state.asked.length > 0, 'the session is asked for')
    pass(1100)
    state.isCurrent = true
    await answer('asked')
    await until(() => seen.includes(message))
  }
  t.same(seen, ['1', '2'])
})

await test('without the store a socket lives on only if its session was read since the process stood still', async (t) => {
  const suspend = timeAhead(t)
  let isAsked = true
  let isCurrent = true
  const sessions = { isCurrent: () => isCurrent, confirm: async () => isAsked, watch: () => () => undefined }
  const user = relayUser(sessions, {} as Session)
  isAsked = false
  t.equal(await user.confirm(), 'away')
  suspend(600)
  t.equal(await user.confirm(), 'deaf')
  isAsked = true
  t.equal(await user.confirm(), 'asked')
  isAsked = false
  t.equal(await user.confirm(), 'away')
  suspend(600)
  t.equal(user.isCurrent(), true, 'another session was heard of, on the same connection')
  isCurrent = false
  t.equal(await user.confirm(), 'deaf')
})

await test('a session that is current after a standstill has been heard of since, and one that is not has not', async (t) => {
  const suspend = timeAhead(t)
  for (const isCurrent of [true, false]) {
    const sessions = { isCurrent: () => isCurrent, confirm: () => Promise.resolve(false), watch: () => () => undefined }
    const user = relayUser(sessions, {} as Session)
    suspend(600)
    t.ok(standstill.count > 0, 'it is noticed')
    t.equal(user.isCurrent(), isCurrent)
    t.equal(await user.confirm(), isCurrent ? 'away' : 'deaf')
  }
})
