import { test } from 'tap'
import { control, pause, shown } from '../support/controls/controls-world.ts'
import { IDENTIFIED } from '../support/login/identity.ts'
import { twoWorkers, workerPids } from '../support/server/two-workers.ts'
import { samplesOf } from '../support/telemetry/metrics.ts'
import { until } from '../support/time/until.ts'
import { startWorld } from '../support/world.ts'

await test('With WORKERS, all workers obey what one was told, also a new one, and without Redis each is told', async (t) => {
  const world = await startWorld(t, { ...IDENTIFIED, redis: true })
  const server = await twoWorkers(t, world.settings)
  const ops = { opsUrl: `http://127.0.0.1:${server.opsPort}` }
  const user = await world.user('CR1')
  const order = async (): Promise<number> => (await user.order({ at: server })).status
  const orders = async (): Promise<number[]> => [...new Set(await Promise.all(Array.from({ length: 12 }, order)))]
  const agreed = (version: unknown, count: number): Promise<void> =>
    until(async () => {
      const { instances } = await shown(ops)
      return instances.length >= count && instances.every((each) => each.version === version)
    })
  t.same(await orders(), [200])
  const paused = await pause(ops, { message: 'all workers' })
  t.match(paused, { status: 200, json: { version: Number } })
  const version = paused.json['version']
  // The third is the server that the user has logged in to.
  await agreed(version, 3)
  t.same(await orders(), [503])
  const text = await (await fetch(`${ops.opsUrl}/metrics`)).text()
  t.match(text, /^bff_orders_paused\{scope="all"\} 1$/m)
  t.match(text, new RegExp(`^bff_controls_version ${String(version)}$`, 'm'))
  const [first = 0] = workerPids(server)
  process.kill(first, 'SIGKILL')
  await until(() => workerPids(server).length === 3)
  await until(async () => (await shown(ops)).instances.length >= 4, 'the new worker has reported')
  t.same(await orders(), [503], 'the worker that takes its place')
  t.match(await control(ops, 'DELETE', '/orders'), { status: 200 })
  await until(async () => (await orders()).join() === '200')
  await until(() => server.output().stdout.includes('"controls_changed"'))

  const sets = async (): Promise<number> =>
    (await samplesOf(ops.opsUrl, 'bff_controls_changes_total')).get('control="orders",action="set"') ?? 0
  const before = await sets()
  await world.redis?.close()
  t.match(await pause(ops, { message: 'without Redis' }), { status: 503, json: { error: /only this instance/ } })
  await until(async () => (await sets()) === before + 1, 'it is counted')
  await until(() => server.output().stdout.includes('"here_only"'))
  t.match(await control(ops, 'DELETE', '/orders'), { status: 503 })
  await until(() => server.output().stdout.split('"here_only"').length > 2)
  t.equal(
    server.output().stdout.split('"here_only"').length,
    3,
    'a line for each command, although both workers were told',
  )
  t.equal(await sets(), before + 1)
})
