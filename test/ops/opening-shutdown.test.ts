import { test } from 'tap'
import { metadataServer, OIDC_PATH } from '../support/login/metadata-server.ts'
import { serverProcess } from '../support/server/server-process.ts'
import { ALONE } from '../support/server/settings.ts'
import { said } from '../support/server/two-workers.ts'
import { testRedis } from '../support/server/test-server.ts'

/** Options of Node.js with which it runs this code before the program. */
const before = (code: string) => ['--import', `data:text/javascript,${encodeURIComponent(code)}`]

/** Options of Node.js with which it sends itself a SIGTERM as soon as it loads a file of src. */
const signalAt = (file: string) =>
  before(`import { registerHooks } from 'node:module'
    const load = (url, context, next) => {
      if (url.endsWith('/src/${file}')) process.kill(process.pid, 'SIGTERM')
      return next(url, context)
    }
    registerHooks({ load })`)

/** Options of Node.js with which the first worker signals its supervisor, and goes on with its start after something. */
const earlyDrain = (after: string) =>
  before(`import cluster from 'node:cluster'
    import { once } from 'node:events'
    if (cluster.worker?.id === 1) {
      const after = ${after}
      process.kill(process.ppid, 'SIGTERM')
      await after
    }`)

for (const file of ['config/config.ts', 'ops/ops-listener.ts', 'serve.ts', 'store/redis-store.ts']) {
  await test(`SIGTERM while ${file} is loaded ends the start with 0`, async (t) => {
    const server = await serverProcess(t, ALONE, { nodeOptions: signalAt(file) })
    t.equal(await server.exited, 0)
  })
}

await test('SIGTERM ends the start with 0 once the provider is discovered', async (t) => {
  const issuer = await metadataServer(t)
  issuer.responses[OIDC_PATH] = issuer.metadata()
  const settings = { ...ALONE, AUTH_URL: issuer.url, DISCOVERY: 'true' }
  const server = await serverProcess(t, settings, { nodeOptions: signalAt('serve.ts') })
  t.equal(await server.exited, 0)
  t.equal(said(server, 'provider discovered').length, 1)
})

await test('WORKERS: SIGTERM while the supervisor is loaded ends the start with 0', async (t) => {
  const settings = { ...ALONE, WORKERS: '2', REDIS_URL: 'redis://127.0.0.1:1' }
  const server = await serverProcess(t, settings, { nodeOptions: signalAt('ops/supervisor.ts') })
  t.equal(await server.exited, 0)
  t.same(said(server, 'not everything ended in time'), [])
})

await test('WORKERS: SIGTERM also ends at once a worker that is still starting', async (t) => {
  const settings = { ...ALONE, WORKERS: '2', REDIS_URL: 'redis://127.0.0.1:1', DRAIN_SECONDS: '30' }
  const never = 'new Promise(() => setInterval(() => undefined, 1000))'
  const server = await serverProcess(t, settings, { nodeOptions: earlyDrain(never) })
  t.equal(await server.exited, 0)
  t.same(said(server, 'not everything ended in time'), [])
})

await test('WORKERS: a worker that was about to listen when the signal came too late to end its start drains all the same', async (t) => {
  const { url } = await testRedis(t)
  const settings = { ...ALONE, WORKERS: '2', REDIS_URL: url, DRAIN_SECONDS: '20' }
  const server = await serverProcess(t, settings, { nodeOptions: earlyDrain(`once(process, 'SIGTERM')`) })
  t.equal(await server.exited, 0)
  const drained = said(server, 'draining').filter(({ by }) => by === 'supervisor')
  t.ok(
    drained.some(({ worker }) => worker === 1),
    'once it listens',
  )
  t.same(said(server, 'not everything ended in time'), [])
})

await test('--check that is interrupted does not end as if all were well', async (t) => {
  const server = await serverProcess(t, ALONE, { nodeOptions: signalAt('ops/check.ts'), arguments: ['--check'] })
  t.equal(await server.exited, null)
})
