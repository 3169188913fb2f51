import { Agent, get, type IncomingMessage } from 'node:http'
import { test, type Test } from 'tap'
import { freePort } from '../../sandbox/listening.ts'
import { JarBrowser } from '../support/browser/jar-browser.ts'
import { IDENTITY, operate } from '../support/login/identity.ts'
import { metadataServer, OIDC_PATH } from '../support/login/metadata-server.ts'
import { ready, serverProcess, type ServerProcess } from '../support/server/server-process.ts'
import { ALONE } from '../support/server/settings.ts'
import { nextEvent, until } from '../support/time/until.ts'
import { logIn, testProvider } from '../support/parts.ts'
import { testRedis } from '../support/server/test-server.ts'

/** The reasons that the ops listener gives for not being ready; undefined while nothing listens. */
async function reasonsOf({ opsPort }: ServerProcess): Promise<string[] | undefined> {
  const response = await fetch(`http://127.0.0.1:${opsPort}/readyz`).catch(() => undefined)
  return response && ((await response.json()) as { reasons: string[] }).reasons
}

const isWaiting = async (server: ServerProcess): Promise<boolean> =>
  (await reasonsOf(server))?.includes('waiting for the metadata of the provider') === true

/** A liveness probe: the status, and the port from which it was sent, which tells its connection. */
async function livez({ opsPort }: ServerProcess, agent: Agent): Promise<{ status: number; from: number }> {
  const probe = get({ host: '127.0.0.1', port: opsPort, path: '/livez', agent })
  const [response] = (await nextEvent(probe, 'response')) as [IncomingMessage]
  const { localPort } = response.socket
  response.resume()
  await nextEvent(response, 'end')
  return { status: Number(response.statusCode), from: Number(localPort) }
}

const isOpen = async ({ port }: ServerProcess): Promise<boolean> =>
  fetch(`http://127.0.0.1:${port}/auth/session`).then(
    () => true,
    () => false,
  )

/** A process that starts while its provider is away. */
async function waitingProcess(t: Test, settings: Record<string, string> = {}) {
  const [port, providerPort] = [await freePort(), await freePort()]
  const issuer = `http://127.0.0.1:${providerPort}`
  const PUBLIC_URL = `http://localhost:${port}`
  const server = await serverProcess(t, {
    ...ALONE,
    PUBLIC_URL,
    AUTH_URL: issuer,
    DISCOVERY: 'true',
    PORT: String(port),
    ...settings,
  })
  await until(() => isWaiting(server), 'the server waits', 30_000)
  const startThere = () => testProvider(t, PUBLIC_URL, { clientId: ALONE.CLIENT_ID, port: providerPort })
  return { server, publicUrl: PUBLIC_URL, startThere }
}

await test('DISCOVERY: while the provider is away the server is alive, not ready and closed; then it starts', async (t) => {
  const { server, publicUrl, startThere } = await waitingProcess(t)
  t.equal((await fetch(`http://127.0.0.1:${server.opsPort}/livez`)).status, 200)
  t.notOk(await isOpen(server))
  const probe = new Agent({ keepAlive: true, maxSockets: 1 })
  t.teardown(() => probe.destroy())
  const first = await livez(server, probe)
  const provider = await startThere()
  t.ok(await ready(server))
  t.same(await livez(server, probe), first, 'the ops port was open all the time: the connection still is')
  await until(() => /"issuer":"http[^}]*"msg":"provider discovered"/.test(server.output().stdout), 'the log says so')
  t.equal((await logIn(new JarBrowser(), publicUrl)).url.href, `${publicUrl}/`)

  await provider.close()
  const page = await fetch(`${publicUrl}/auth/login`, { redirect: 'manual' })
  t.match(page.headers.get('location'), /\/oauth2\/auth\?/, 'the endpoints are kept while the provider is away again')
  t.same(await reasonsOf(server), [])
})

await test('DISCOVERY: /sessions is refused while the server waits, and served by the same listener afterwards', async (t) => {
  const { server, startThere } = await waitingProcess(t, IDENTITY)
  const list = () => operate({ opsUrl: `http://127.0.0.1:${server.opsPort}` }, 'GET', { subject: 'CR1' })
  const refused = await list()
  t.equal(refused.status, 503)
  t.match(await refused.json(), { error: /still starting/ })
  t.equal((await fetch(`http://127.0.0.1:${server.opsPort}/sessions?subject=CR1`)).status, 401, 'the token is needed')
  await startThere()
  t.ok(await ready(server))
  t.same(await (await list()).json(), { sessions: [] })
})

await test('DISCOVERY with WORKERS: the supervisor asks once, and every worker has the endpoints', async (t) => {
  const redis = await testRedis(t)
  const issuer = await metadataServer(t)
  issuer.responses[OIDC_PATH] = issuer.metadata()
  const port = await freePort()
  const settings = { ...ALONE, PUBLIC_URL: `http://localhost:${port}`, AUTH_URL: issuer.url, PORT: String(port) }
  const server = await serverProcess(t, { ...settings, REDIS_URL: redis.url, WORKERS: '2', DISCOVERY: 'true' })
  t.ok(await ready(server))
  const page = await fetch(`http://127.0.0.1:${port}/auth/login`, { redirect: 'manual' })
  t.match(page.headers.get('location'), `${issuer.url}/authorize?`)
  t.same(issuer.requests, [OIDC_PATH])
})

await test('DISCOVERY: SIGTERM ends a server that waits for its provider', async (t) => {
  const { server } = await waitingProcess(t)
  server.child.kill('SIGTERM')
  t.equal(await server.exited, 0)
})

await test('DISCOVERY: exit code 78 and the reason if the metadata cannot be used', async (t) => {
  const issuer = await metadataServer(t)
  issuer.responses[OIDC_PATH] = issuer.metadata({ token_endpoint: 'http://10.0.0.1/token' })
  const wrong = await serverProcess(t, { ...ALONE, AUTH_URL: issuer.url, DISCOVERY: 'true' })
  t.equal(await wrong.exited, 78)
  t.match(
    wrong.output().stderr,
    /^1 setting\(s\) are wrong:\n {2}ISSUER has metadata whose token_endpoint is on another/,
  )
})

await test('Without DISCOVERY nothing is requested from the provider at the start', async (t) => {
  const issuer = await metadataServer(t)
  const server = await serverProcess(t, { ...ALONE, AUTH_URL: issuer.url })
  t.ok(await ready(server))
  t.same(issuer.requests, [])
})
