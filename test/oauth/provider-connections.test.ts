import { generateKeyPairSync } from 'node:crypto'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import { Worker } from 'node:worker_threads'
import { test } from 'tap'
import { readConfig, type Config } from '../../src/config/config.ts'
import { discover } from '../../src/oauth/discovery.ts'
import { Provider } from '../../src/oauth/provider.ts'
import { ProviderConnections } from '../../src/oauth/provider-connections.ts'
import { ProviderTraffic } from '../../src/oauth/provider-traffic.ts'
import { checkProvider } from '../../src/ops/check-provider.ts'
import { forgetfulProvider, type ForgetfulProvider } from '../support/login/forgetful-provider.ts'
import { OAUTH_PATH, OIDC_PATH } from '../support/login/metadata-server.ts'
import { ALONE } from '../support/server/settings.ts'
import { exactly } from '../support/exactly.ts'
import { nextEvent } from '../support/time/until.ts'

const TOKENS = JSON.stringify({ access_token: 'the-access-token', token_type: 'Bearer', expires_in: 3600 })

function configOf({ url }: ForgetfulProvider): Config['oauth'] {
  const settings = { ...ALONE, AUTH_URL: url, REVOCATION_URL: `${url}/revoke`, PAR_URL: `${url}/push` }
  return readConfig(settings).oauth
}

/** This process stands still. */
const standStill = (ms: number): unknown => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)

const proofs = { state: 's', verifier: 'v'.repeat(43), nonce: undefined, startedAt: Date.now() }

for (const isTls of [false, true]) {
  const how = isTls ? 'over TLS, even if the provider speaks HTTP/2' : 'without TLS'
  await test(`Every request to the provider opens its own connection, so that none goes to one that is dead, ${how}`, async (t) => {
    const endpoint = await forgetfulProvider(t, isTls)
    const { responses, requests, url } = endpoint
    const keys = { keys: [generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' })] }
    responses['/oauth2/token'] = TOKENS
    responses['/revoke'] = '{}'
    responses['/push'] = JSON.stringify({ request_uri: 'urn:pushed', expires_in: 60 })
    responses['/keys'] = JSON.stringify(keys)
    responses[OAUTH_PATH] = JSON.stringify({
      issuer: url,
      authorization_endpoint: `${url}/oauth2/auth`,
      token_endpoint: `${url}/oauth2/token`,
    })
    const config = configOf(endpoint)
    const [provider, traffic] = [new Provider(config), new ProviderTraffic(config)]
    t.teardown(() => Promise.all([provider.close(), traffic.close()]))
    for (let times = 0; times < 2; times++) {
      t.match(await provider.exchange('code=c&state=s', proofs), { is: 'granted' })
      t.match(await provider.refresh('refresh', 'a user'), { is: 'granted' })
      t.same(await provider.revoke({ accessToken: 'a', refreshToken: 'r' }), [])
      t.match(await provider.authorizationUrl({ state: 's', verifier: 'v'.repeat(43), signup: undefined }), {
        is: 'ready',
      })
      t.same(await traffic.document('keys', `${url}/keys`, 5000), keys)
      t.match(await discover(config), { is: 'found' }, 'after a 404 at the other place')
    }
    await checkProvider(config)
    const used = requests.map(({ connection }) => connection)
    t.equal(new Set(used).size, used.length)
    t.same(new Set(requests.map(({ version }) => version)), new Set(['1.1']))
  })

  await test(`No request to the provider is sent once its time is over, after a standstill, ${how}`, async (t) => {
    const { url, requests, responses } = await forgetfulProvider(t, isTls)
    responses['/oauth2/token'] = TOKENS
    const connections = new ProviderConnections(url)
    t.teardown(() => connections.close())
    const ask = (timeoutMs: number) =>
      connections.fetch(`${url}/oauth2/token`, { method: 'POST', body: 'b' }, timeoutMs)
    let attempts = 0
    const onSocket = (message: unknown): void => {
      const { socket } = message as { socket: Socket }
      // The connection opens meanwhile.
      socket.once('connectionAttempt', () => attempts++ === 0 && process.nextTick(standStill, 300))
    }
    subscribe('net.client.socket', onSocket)
    t.teardown(() => unsubscribe('net.client.socket', onSocket))
    await t.rejects(ask(200), { name: 'TimeoutError' })
    await (await ask(5000)).text()
    t.equal(attempts, 2)
    t.equal(requests.length, 1)
  })

  await test(`No request to the provider is sent twice after a 421, as fetch() would do it, ${how}`, async (t) => {
    const endpoint = await forgetfulProvider(t, isTls)
    const config = configOf(endpoint)
    const seen: string[] = []
    const observer = { asked: (request: string, outcome: string) => void seen.push(`${request} ${outcome}`) }
    const [provider, traffic] = [new Provider(config, observer), new ProviderTraffic(config, observer)]
    t.teardown(() => Promise.all([provider.close(), traffic.close()]))
    for (const path of ['/oauth2/token', '/revoke', '/push', '/keys', OIDC_PATH]) endpoint.responses[path] = 421
    const unavailable = { is: 'unavailable', code: 'provider_unavailable', cause: { cause: { status: 421 } } }
    t.match(await provider.exchange('code=c&state=s', proofs), unavailable)
    t.match(await provider.refresh('refresh', 'a user'), unavailable)
    t.match(await provider.revoke({ accessToken: 'a' }), exactly({ status: 421 }))
    t.match(await provider.authorizationUrl({ state: 's', verifier: 'v'.repeat(43), signup: undefined }), {
      is: 'unavailable',
    })
    await t.rejects(traffic.document('keys', `${endpoint.url}/keys`, 5000), { message: /status 421/ })
    t.match(await discover(config), { is: 'away', cause: { status: 421 } })
    t.same(
      endpoint.requests.map(({ method, path }) => `${method} ${path}`),
      ['POST /oauth2/token', 'POST /oauth2/token', 'POST /revoke', 'POST /push', 'GET /keys', `GET ${OIDC_PATH}`],
    )
    t.same(seen, ['exchange failed', 'refresh failed', 'revoke failed', 'push failed', 'keys failed'])
  })
}

await test('--check: a provider that speaks HTTP/2 alone is told from one that is away', async (t) => {
  const [token] = await checkProvider(configOf(await forgetfulProvider(t, true, false)))
  t.match(token, {
    is: 'failed',
    message: /cannot be reached \(ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL\)$/,
    advice: 'It does not speak HTTP/1.1, and this server speaks nothing else.',
  })
})

/** Another thread, which answers while this one stands still. It counts the requests in `asked`, and answers 100 ms later. */
const ANSWERING_THREAD = `
  const { createServer } = require('node:http')
  const { workerData: asked, parentPort } = require('node:worker_threads')
  const server = createServer((request, response) => {
    Atomics.add(asked, 0, 1)
    Atomics.notify(asked, 0)
    setTimeout(() => response.setHeader('content-type', 'application/json').end('{"keys":[]}'), 100)
  }).listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port))
`

await test('What the provider has answered while this process stood still is read before the time limit decides', async (t) => {
  const asked = new Int32Array(new SharedArrayBuffer(4))
  const thread = new Worker(ANSWERING_THREAD, { eval: true, workerData: asked })
  t.teardown(() => thread.terminate())
  const [port] = (await nextEvent(thread, 'message')) as [number]
  const traffic = new ProviderTraffic(readConfig({ ...ALONE, AUTH_URL: `http://127.0.0.1:${port}` }).oauth)
  t.teardown(() => traffic.close())
  const keys = traffic.document('keys', `http://127.0.0.1:${port}/`, 500)
  keys.catch(() => undefined)
  await Atomics.waitAsync(asked, 0, 0).value
  Atomics.wait(asked, 0, 1, 1000)
  t.same(await keys, { keys: [] })
  await t.rejects(traffic.document('keys', `http://127.0.0.1:${port}/`, 1), { name: 'TimeoutError' })
})
