import { spawnSync } from 'node:child_process'
import { Registry } from 'prom-client'
import { test } from 'tap'
import { readConfig } from '../../src/config/config.ts'
import { refusedName } from '../../src/store/keys.ts'
import { MemoryStore } from '../../src/store/memory-store.ts'
import type { Metrics } from '../../src/telemetry/metrics.ts'
import { PROCESS_CLOCK } from '../../src/upstream/budget/clock.ts'
import { openBudget } from '../../src/upstream/open-budget.ts'
import { ALONE } from '../support/server/settings.ts'
import { replace } from '../support/time/replace.ts'
import { until } from '../support/time/until.ts'

await test('without UPSTREAM_BUDGET there is no budget, and no figures of one', async (t) => {
  const registry = new Registry()
  t.equal(await openBudget(readConfig(ALONE), new MemoryStore(), { registry } as Metrics), undefined)
  t.strictSame(registry.getMetricsAsArray(), [])
})

await test('with UPSTREAM_BUDGET there is one, whose figures are registered, and users count under a hash', async (t) => {
  const registry = new Registry()
  const store = new MemoryStore()
  const written: string[] = []
  const shared = {
    openLedger: store.openLedger.bind(store),
    openRefusals: async () => ({
      read: async () => ({ version: '', text: '', now: Date.now() }),
      write: async (_version: string, text: string) => (written.push(text), 'version'),
      close: () => undefined,
    }),
  }
  const config = readConfig({ ...ALONE, UPSTREAM_BUDGET: '300/60' })
  const budget = await openBudget(config, shared, { registry } as Metrics)
  t.teardown(() => budget?.close())
  t.ok(registry.getSingleMetric('bff_upstream_budget_left'))
  t.match(await registry.metrics(), 'bff_upstream_budget_limit{window="60"} ')
  const admission = await budget?.admit('reads', 'subject:ada', () => 'subject:ada')
  if (admission?.is !== 'granted') throw new Error('not granted')
  admission.reservation.start()
  admission.reservation.answered(429, '1')
  const [secret = ''] = config.secrets.current
  await until(() => written.length > 0)
  t.match(written[0], refusedName('subject:ada', secret))
  t.notMatch(written[0], 'ada')
})

await test('the clocks of a process go by what the machine says, and a timer calls once unless it is cancelled', async (t) => {
  replace(t, performance, 'now', () => 12)
  replace(t, Date, 'now', () => 34)
  t.strictSame([PROCESS_CLOCK.now(), PROCESS_CLOCK.timeOfDay()], [12, 34])
  const called: string[] = []
  const { promise, resolve } = Promise.withResolvers<void>()
  PROCESS_CLOCK.after(0, () => called.push('cancelled'))()
  PROCESS_CLOCK.after(1, () => (called.push('first'), resolve()))
  const awake = setInterval(() => undefined, 1000)
  await promise
  clearInterval(awake)
  t.strictSame(called, ['first'])
})

await test('a timer of the budget keeps no process alive', (t) => {
  const clock = new URL('../../src/upstream/budget/clock.ts', import.meta.url).href
  const text = `import { PROCESS_CLOCK } from '${clock}'; PROCESS_CLOCK.after(100_000_000, () => undefined)`
  const { status } = spawnSync(process.execPath, ['--input-type=module', '-e', text], { timeout: 60_000 })
  t.equal(status, 0)
  t.end()
})
