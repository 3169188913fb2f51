import { test } from 'tap'
import program from '../../package.json' with { type: 'json' }
import { IDENTITY, OPS_TOKEN } from '../support/login/identity.ts'
import { ready, serverProcess, type ServerProcess } from '../support/server/server-process.ts'
import { ALONE } from '../support/server/settings.ts'
import { twoWorkers, workerPids } from '../support/server/two-workers.ts'
import { until } from '../support/time/until.ts'

type Line = Record<string, unknown> & { msg?: string; worker?: number; version?: string; instance?: string }

const linesOf = (server: ServerProcess): Line[] =>
  server
    .output()
    .stdout.split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Line)

const pidOf = ({ instance }: Line): number => Number(String(instance).split('/')[1])

/** The names of the instances that GET /controls shows. */
async function instancesOf({ opsPort }: ServerProcess): Promise<string[]> {
  const headers = { authorization: `Bearer ${OPS_TOKEN}` }
  const response = await fetch(`http://127.0.0.1:${opsPort}/controls`, { headers })
  const { instances } = (await response.json()) as { instances: { instance: string }[] }
  return instances.map(({ instance }) => instance).toSorted()
}

await test('Every line of a process has its version, and the instance that GET /controls shows', async (t) => {
  const server = await serverProcess(t, { ...ALONE, ...IDENTITY, OPS_TOKEN })
  t.ok(await ready(server))
  await fetch(`http://127.0.0.1:${server.port}/nowhere`)
  await until(() => linesOf(server).some(({ msg }) => msg === 'request'))
  const [instance = ''] = await instancesOf(server)
  t.match(instance, new RegExp(`/${server.child.pid}/`))
  server.child.kill('SIGTERM')
  t.equal(await server.exited, 0)
  const lines = linesOf(server)
  t.ok(lines.some(({ msg }) => msg === 'starting'))
  for (const line of lines) t.match(line, { instance, version: program.version }, String(line['msg']))
})

await test('With WORKERS so has every line of the supervisor and of each worker', async (t) => {
  const server = await twoWorkers(t, { ...IDENTITY, OPS_TOKEN })
  await until(async () => (await instancesOf(server)).length === 2)
  const known = await instancesOf(server)
  server.child.kill('SIGTERM')
  t.equal(await server.exited, 0)
  const workers = workerPids(server)
  const lines = linesOf(server)
  const own = lines.filter((line) => pidOf(line) === server.child.pid)
  t.equal(own.filter(({ msg }) => msg === 'a worker starts').length, 2)
  for (const line of lines.filter((each) => pidOf(each) !== server.child.pid)) {
    const { instance, worker, msg } = line
    t.equal(pidOf(line), workers[Number(worker) - 1], String(msg))
    t.ok(known.includes(String(instance)), `${String(instance)} of ${known.join(' ')}`)
  }
  for (const { version, msg } of lines) t.equal(version, program.version, String(msg))
  t.equal(new Set(lines.map(({ instance }) => instance)).size, 3)
})

for (const workers of ['1', '2']) {
  await test(`bff_build_info has the commit of the environment (WORKERS=${workers})`, async (t) => {
    const revision = '0123456789abcdef0123456789abcdef01234567'
    const settings = { ...ALONE, REVISION: revision }
    const server = await (workers === '1' ? serverProcess(t, settings) : twoWorkers(t, { REVISION: revision }))
    t.ok(await ready(server))
    const text = await (await fetch(`http://127.0.0.1:${server.opsPort}/metrics`)).text()
    const { version } = program
    t.match(text, `bff_build_info{version="${version}",revision="${revision}",node="${process.versions.node}"} 1\n`)
  })
}
