import { startProvider } from './provider.ts'
import { startUpstream } from './upstream.ts'

/** `node sandbox/serve.ts` starts the provider and the trading service, for a server that is started separately. */

const environment = process.env
// The host in their URLs, and the address on which they listen, which may differ in a container.
const host = environment['SANDBOX_HOST'] ?? '127.0.0.1'
const bind = environment['BIND'] ?? host
const publicUrl = environment['PUBLIC_URL'] ?? 'http://localhost:3000'
const provider = await startProvider({
  port: Number(environment['PROVIDER_PORT'] ?? 4000),
  host,
  bind,
  clientId: environment['CLIENT_ID'] ?? 'demo-client',
  redirectUris: [`${publicUrl}/auth/callback`],
})
const upstream = await startUpstream({
  port: Number(environment['UPSTREAM_PORT'] ?? 4100),
  host,
  bind,
  provider,
})
process.stdout.write(`Provider at ${provider.url}, trading service at ${upstream.url}\n`)

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void Promise.all([provider.close(), upstream.close()]).then(() => process.exit(0)))
}
