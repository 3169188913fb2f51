import { test } from 'tap'
import { freePort } from '../../sandbox/listening.ts'
import { serverProcess } from '../support/server/server-process.ts'
import { ALONE } from '../support/server/settings.ts'
import { until } from '../support/time/until.ts'

await test('The first log line of a process describes its settings, and no line holds a secret', async (t) => {
  const secrets = {
    SESSION_SECRETS: 'never-print-this-session-secret-of-32-bytes,never-print-this-other-one-of-32-bytes',
    CLIENT_SECRET: 'never-print-this-client-secret',
  }
  const unreachable = `127.0.0.1:${await freePort()}`
  const stores = [
    [`redis://never-print-user:never-print-password@${unreachable}`, { in: 'redis', servers: [unreachable] }],
    [
      `redis://never-print-user:never-print-password@${unreachable},redis://never-print-user:never-print-password@127.0.0.1:2`,
      { in: 'cluster', servers: [unreachable, '127.0.0.1:2'] },
    ],
    [
      `redis+sentinel://never-print-user:never-print-password@${unreachable}/main`,
      { in: 'sentinel', servers: [unreachable] },
    ],
  ] as const
  const checkStore = async ([url, sessions]: (typeof stores)[number]): Promise<void> => {
    const settings = {
      ...secrets,
      REDIS_URL: url,
      LOG_LEVEL: 'trace',
      TRUST_PROXY: '2',
      MAX_RELAYS: '7',
      PUBLIC_FEED: 'shared',
    }
    const server = await serverProcess(t, { ...ALONE, ...settings, READY_GRACE_SECONDS: '3600' })
    // Without its store it serves, but is not ready.
    let page: Response | undefined
    await until(async () => {
      page = await fetch(`http://127.0.0.1:${server.port}/auth/login`, {
        redirect: 'manual',
        headers: { cookie: '__Host-session=x.y' },
      }).catch(() => undefined)
      return page !== undefined
    })
    t.match(page?.headers.get('location'), 'auth_error=try_later')
    server.child.kill('SIGTERM')
    t.equal(await server.exited, 0)
    const { stdout, stderr } = server.output()
    t.match(JSON.parse(stdout.split('\n', 1)[0] ?? ''), {
      msg: 'starting',
      publicUrl: ALONE.PUBLIC_URL,
      production: false,
      workers: 1,
      provider: ALONE.AUTH_URL,
      upstream: { rest: ALONE.API_URL, sockets: ALONE.WS_URL },
      publicFeed: 'shared',
      trustProxy: '2',
      changedLimits: { MAX_RELAYS: 7, READY_GRACE_SECONDS: 3600 },
      sessions,
      secrets: 2,
    })
    t.notMatch(stdout + stderr, /never-print/)
  }
  await Promise.all(stores.map(checkStore))
})

await test('A start does not load the copy of undici that Node has', async (t) => {
  const report = `process.once('SIGTERM', () => process.stderr.write(process.moduleLoadList.join('\\n')))`
  const nodeOptions = [`--import=data:text/javascript,${encodeURIComponent(report)}`]
  const server = await serverProcess(t, { ...ALONE }, { nodeOptions })
  await until(() => server.output().stdout.includes('"ready"'))
  server.child.kill('SIGTERM')
  t.equal(await server.exited, 0)
  const { stderr } = server.output()
  t.match(stderr, /^NativeModule _http_server$/m, 'what is loaded is reported')
  // An import of a value from node:http loads all that this exports.
  t.notMatch(stderr, /internal\/deps\/undici/)
})
