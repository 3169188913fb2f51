import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { freePort } from '../../sandbox/listening.ts'
import { BrowserSocket } from '../support/browser/browser-socket.ts'
import { JarBrowser } from '../support/browser/jar-browser.ts'
import { rendered, type Resource } from '../support/deployment/manifests.ts'
import { runCommand } from '../support/sandbox/command.ts'
import { ready, serverProcess } from '../support/server/server-process.ts'
import { logIn } from '../support/parts.ts'
import { testRedis } from '../support/server/test-server.ts'
import { until } from '../support/time/until.ts'

type Environment = Record<string, string>

/** The address that stands for that of the Service `sandbox`: browsers outside of the cluster do not use it. */
const INSIDE = '127.0.0.2'

const SERVE = fileURLToPath(new URL('../../sandbox/serve.ts', import.meta.url))

await test('deploy/kubernetes/laptop: users log in, call the API and trade, with the settings of its instances and of its sandbox', async (t) => {
  const [port, providerPort, upstreamPort] = [await freePort(), await freePort(), await freePort()]
  const here = (values: Environment): Environment =>
    Object.fromEntries(
      Object.entries(values).map(([name, value]) => [
        name,
        value
          .replace('localhost:3000', `localhost:${port}`)
          .replace(':4000', `:${providerPort}`)
          .replace(':4100', `:${upstreamPort}`)
          .replace(/\bsandbox\b/, INSIDE),
      ]),
    )
  const resources = rendered('laptop')
  const ports = { PROVIDER_PORT: String(providerPort), UPSTREAM_PORT: String(upstreamPort) }
  const sandbox = runCommand(t, [process.execPath, SERVE], {
    cwd: t.testdir({}),
    env: { ...here(environmentOf(resources, 'sandbox')), ...ports },
  })
  await until(() => sandbox.output.stdout.includes('API_URL') || sandbox.output.stderr !== '')
  t.equal(sandbox.output.stderr, '')

  const inCluster = environmentOf(resources, 'trading-bff')
  for (const name of ['TOKEN_URL', 'API_URL', 'WS_URL']) {
    // Here localhost would do as well.
    t.equal(new URL(inCluster[name] ?? '').hostname, 'sandbox', `${name} leads to the Service`)
  }
  const settings = here(inCluster)
  const secrets = t.testdir({})
  const files = ['SESSION_SECRETS_FILE', 'REDIS_URL_FILE'].map((name) => [
    name,
    join(secrets, settings[name]?.replace(/.*\//, '') ?? ''),
  ])
  const redisUrl = (await testRedis(t)).url
  for (const [key, value] of Object.entries(secretOf(resources))) {
    t.equal(value.startsWith('redis://redis:6379'), key === 'redis-url')
    writeFileSync(join(secrets, key), key === 'redis-url' ? redisUrl : value)
  }
  const server = await serverProcess(t, {
    ...settings,
    ...Object.fromEntries(files),
    // It is made by the image of the sandbox.
    STATIC_DIR: secrets,
    PORT: String(port),
  })
  t.ok(await ready(server), server.output().stderr)

  const browser = new JarBrowser()
  const publicUrl = settings['PUBLIC_URL'] ?? ''
  await logIn(browser, publicUrl, 'new@example.test')
  const accounts = await browser.fetch('/api/trading/v1/options/accounts', { headers: { 'x-csrf': '1' } })
  t.equal(accounts.status, 200)
  const [account] = ((await accounts.json()) as { data: { account_id: string }[] }).data
  const cookie = browser.cookieHeader(new URL(publicUrl), new URL(publicUrl))
  const address = `ws://localhost:${port}/ws/trading/${account?.account_id}`
  const trading = await new BrowserSocket(address, { origin: publicUrl, cookie }).opened()
  trading.socket.send('{"balance":1}')
  const [message] = await trading.count(1)
  t.match(String(message?.data), '"msg_type":"balance"', 'the one-time URL leads to the trading service')
  trading.socket.terminate()
})

/** The environment of the only container of a Deployment. */
function environmentOf(resources: readonly Resource[], name: string): Environment {
  const named = (kind: string, wanted: string) =>
    resources.find((each) => each.kind === kind && each.metadata.name === wanted)
  const { spec } = named('Deployment', name) as unknown as {
    spec: {
      template: {
        spec: {
          containers: {
            env?: { name: string; value: string }[]
            envFrom?: { configMapRef: { name: string } }[]
          }[]
        }
      }
    }
  }
  const [container] = spec.template.spec.containers
  const maps = (container?.envFrom ?? []).map(
    ({ configMapRef }) => (named('ConfigMap', configMapRef.name) as unknown as { data: Environment }).data,
  )
  const own = Object.fromEntries((container?.env ?? []).map((each) => [each.name, each.value]))
  return Object.assign({}, ...maps, own) as Environment
}

/** The values of the only Secret. */
function secretOf(resources: readonly Resource[]): Environment {
  const { data } = resources.find(({ kind }) => kind === 'Secret') as unknown as { data: Environment }
  return Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value, 'base64').toString()]))
}
