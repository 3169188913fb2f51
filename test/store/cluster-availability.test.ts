import { test } from 'tap'
import { slotOf } from '../../src/store/links/cluster-slots.ts'
import { unlessAway } from '../../src/store/store.ts'
import { connectedStore } from '../support/redis/connected-store.ts'
import { askRedis, testMasters } from '../support/redis/topologies.ts'
import { untilSlow as until } from '../support/time/until.ts'

/** Longer than between two probes, or two failures here. */
const LONG_MS = 2500
const keys = Array.from({ length: 100 }, (_, at) => `key ${at}`)
/** A key of each half of the slots. */
const [lower = '', upper = ''] = [false, true].map((isUpper) => keys.find((key) => slotOf(key) >= 8192 === isUpper))

for (const trouble of ['takes no writes', 'is gone'] as const) {
  await test(`a master of a Cluster that ${trouble} interrupts only its own keys`, async (t) => {
    const nodes = await testMasters(t, 2)
    const [failing] = nodes
    if (failing === undefined) throw new Error('no master')
    const store = await connectedStore(t, nodes.map(({ url }) => url).join(','))
    for (const key of [lower, upper]) {
      await store.create(key, 'value', Date.now() + 600_000)
      await until(() => store.availableForMs(key) > LONG_MS, 'both serve')
    }
    if (trouble === 'is gone') await failing.close()
    else await askRedis(failing, ['CONFIG', 'SET', 'min-replicas-to-write', '1'])
    await until(async () => (await unlessAway(store.count('{' + lower + '}', 1, 60_000))) === undefined, 'it fails')
    await until(async () => {
      await unlessAway(store.count('{' + lower + '}', 1, 60_000))
      return store.availableForMs(upper) > LONG_MS
    }, 'the other one serves')
    t.ok(store.availableForMs(lower) < LONG_MS)
    t.match(await store.read(upper), { value: 'value' })
    if (trouble === 'is gone') return
    await askRedis(failing, ['CONFIG', 'SET', 'min-replicas-to-write', '0'])
    await until(() => store.availableForMs(lower) > LONG_MS, 'it serves again')
  })
}
