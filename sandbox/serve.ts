import { startProvider } from './provider.ts'
import { startUpstream } from './upstream.ts'

/** Provider and trading service alone, for a server that runs elsewhere: `node sandbox/serve.ts`. */

const environment = process.env
// Where others find both, and where they listen, if that is another address; in a container, for instance.
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
  process.once(
    signal,
    () => void Promise.all([provider.close(), upstream.close()]).then(() => process.exit(0)),
  )
}
