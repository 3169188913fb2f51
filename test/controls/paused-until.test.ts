import { test } from 'tap'
import { MemoryStore } from '../../src/store/memory-store.ts'
import { control, controlsWorld, pause, shown } from '../support/controls/controls-world.ts'
import { testServer } from '../support/server/test-server.ts'
import { IDENTITY } from '../support/login/identity.ts'
import { ALONE } from '../support/server/settings.ts'
import { until } from '../support/time/until.ts'

const PAUSED = { status: 503, json: { code: 'orders_paused' } }

type Told = Awaited<ReturnType<typeof control>>
const versionIn = ({ json }: Told): number => Number(json['version'])

await test('until is measured by the clock of Redis: orders go on by themselves, and Retry-After says when', async (t) => {
  const world = await controlsWorld(t, { instances: 1 })
  const { server } = world
  const user = await world.user('CR1')
  const end = Math.floor(Date.now() / 1000) + 3
  const paused = await pause(server, { until: end })
  t.equal(paused.status, 200)
  const refused = await user.order({ at: server })
  t.match(refused, PAUSED)
  t.match(refused.headers['retry-after'], /^[123]$/)
  t.match(await shown(server), { orders: { until: end } })
  await until(async () => (await user.order({ at: server })).status === 200)
  t.ok(Date.now() >= end * 1000)
  t.match(await shown(server), { orders: null, version: versionIn(paused) })
})

/** A store whose clock is ahead. */
class AheadStore extends MemoryStore {
  override async readMarked(key: string, mark: string) {
    const reading = await super.readMarked(key, mark)
    return { ...reading, now: reading.now + 7_200_000 }
  }
}

await test('an until that is in the past by the clock of the store is refused, whatever the clock of the instance', async (t) => {
  const server = await testServer(t, { ...ALONE, ...IDENTITY }, new AheadStore())
  const now = Math.floor(Date.now() / 1000)
  t.equal((await pause(server, { until: now + 3600 })).status, 400)
  t.equal((await pause(server, { until: now + 7300 })).status, 200)
  t.match(await shown(server), { orders: { until: now + 7300 } })
})
