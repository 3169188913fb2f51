import { startProvider } from './provider.ts'
import { startUpstream } from './upstream.ts'

/** Provider and trading service alone, for a server that runs elsewhere: `node sandbox/serve.ts`. */

const environment = process.env
const publicUrl = environment['PUBLIC_URL'] ?? 'http://localhost:3000'
const provider = await startProvider({
  port: Number(environment['PROVIDER_PORT'] ?? 4000),
  ...(environment['BIND'] !== undefined && { bind: environment['BIND'] }),
  clientId: environment['CLIENT_ID'] ?? 'demo-client',
  redirectUris: [`${publicUrl}/auth/callback`],
})
const upstream = await startUpstream({ port: Number(environment['UPSTREAM_PORT'] ?? 4100), provider })
process.stdout.write(`Provider at ${provider.url}, trading service at ${upstream.url}\n`)

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(
    signal,
    () => void Promise.all([provider.close(), upstream.close()]).then(() => process.exit(0)),
  )
}
