import { MemoryStore } from '../../src/store/memory-store.ts'
import { EXPIRED, eventsOf, listening, use } from '../support/sockets/session-socket.ts'
import { sideBySide } from '../support/time/side-by-side.ts'
import { nextEvent, until } from '../support/time/until.ts'
import { TRADING } from '../support/user.ts'
import { startWorld, RELAY } from '../support/world.ts'

/** A store that reports no change, as if each report were still on its way. */
class SilentStore extends MemoryStore {
  override onChange(): void {
    // It reports nothing.
  }
}

await sideBySide({
  'a session that nobody uses ends, although its session socket is open, with the reason idle': async (t) => {
    const world = await startWorld(t, { ...RELAY, redis: true, settings: { SESSION_IDLE_SECONDS: '4' } })
    const client = await listening(world)
    await client.count(2)
    const [first = {}, warning = {}] = eventsOf(client)
    t.match(warning, { event: 'expiring', why: 'idle', at: first['idle_expires_at'] })
    t.same(await client.closed, EXPIRED)
    t.same(eventsOf(client).slice(2), [{ event: 'ended', reason: 'idle' }])
  },

  'at the absolute limit the reason is expired, and the warning says absolute': async (t) => {
    const world = await startWorld(t, { ...RELAY, settings: { SESSION_MAX_SECONDS: '4' } })
    const client = await listening(world)
    t.same(await client.closed, EXPIRED)
    const events = eventsOf(client)
    t.match(events[1], { event: 'expiring', why: 'absolute', at: events[0]?.['expires_at'] })
    t.same(events.at(-1), { event: 'ended', reason: 'expired' })
  },

  'near the absolute limit, the idle one moves on by itself, and the warning still comes 60 seconds ahead': async (
    t,
  ) => {
    const settings = { SESSION_IDLE_SECONDS: '63', SESSION_MAX_SECONDS: '67' }
    const world = await startWorld(t, { ...RELAY, settings })
    t.equal((await use(world)).status, 204)
    const client = await listening(world)
    await client.count(2)
    const [state, warning = {}] = eventsOf(client)
    t.match(warning, { event: 'expiring', why: 'absolute', at: state?.['expires_at'] })
    t.ok(Number(warning['at']) - Number(warning['now']) <= 60)
    client.socket.close()
  },

  'a session that was used on another instance a moment ago does not expire soon, although no report says so yet':
    async (t) => {
      // The page sees the limit a tenth early, so the warning is due after three seconds.
      const settings = { SESSION_IDLE_SECONDS: '70' }
      const world = await startWorld(t, { ...RELAY, store: new SilentStore(), instances: 2, settings })
      const client = await listening(world)
      t.equal((await world.call('POST', '/auth/session', { at: world.servers[1] })).status, 204)
      await client.count(2)
      client.socket.ping()
      await nextEvent(client.socket, 'pong')
      t.same(
        eventsOf(client).map(({ event }) => event),
        ['session', 'session'],
        'the new limit, and no warning',
      )
      client.socket.close()
    },

  'POST /auth/session moves the idle limit, and session sockets of all instances receive the new state': async (t) => {
    const world = await startWorld(t, { ...RELAY, redis: true, settings: { SESSION_IDLE_SECONDS: '10' } })
    const other = await world.instance()
    const clients = await Promise.all([listening(world), listening(world, other.port)])
    const shown: number[] = []
    await until(async () => {
      t.equal((await use(world)).status, 204)
      const state = (await (await use(world, 'GET')).json()) as { idle_expires_at: number; now: number }
      shown.push(state.idle_expires_at)
      t.ok(state.idle_expires_at - state.now <= 10, 'never further ahead than SESSION_IDLE_SECONDS')
      return state.idle_expires_at > (shown[0] ?? 0) + 1
    })
    t.same(
      shown,
      shown.toSorted((one, another) => one - another),
      'it never moves back',
    )
    const latest = shown.at(-1)
    for (const client of clients) {
      await until(() => eventsOf(client).some((each) => each['idle_expires_at'] === latest))
      client.socket.close()
    }
  },

  'a session socket is no use of its session, and a trading socket is': async (t) => {
    const world = await startWorld(t, { ...RELAY, redis: true, settings: { SESSION_IDLE_SECONDS: '2' } })
    const relay = await world.socket(TRADING).opened()
    const client = await listening(world)
    await new Promise((resolve) => void setTimeout(resolve, 3000))
    t.equal(client.socket.readyState, client.socket.OPEN, 'the relay keeps the session alive')
    relay.socket.close()
    t.same(await client.closed, EXPIRED)
    t.same(eventsOf(client).at(-1), { event: 'ended', reason: 'idle' })
  },
})
