import { existsSync } from 'node:fs'
import { loadEnvFile } from 'node:process'
import { requireFree } from './listening.ts'
import { startProvider } from './provider.ts'
import { startUpstream } from './upstream.ts'

/**
 * `npm run sandbox`: the provider and the trading service, for a server that is started separately. It prints the settings
 * of that server as a complete `.env`, and follows the PUBLIC_URL and CLIENT_ID of an existing one.
 */

if (existsSync('.env')) loadEnvFile('.env')
const environment = process.env
// The host in their URLs, and the address on which they listen, which may differ in a container. Only browsers follow the
// URLs of the provider, and only servers those of the trading service, so these two hosts may differ as well.
const host = environment['SANDBOX_HOST'] ?? '127.0.0.1'
const upstreamHost = environment['UPSTREAM_HOST'] ?? host
const bind = environment['BIND'] ?? host
const publicUrl = environment['PUBLIC_URL'] ?? 'http://localhost:3000'
const clientId = environment['CLIENT_ID'] ?? 'demo-client'
const ports = {
  PROVIDER_PORT: Number(environment['PROVIDER_PORT'] ?? 4000),
  UPSTREAM_PORT: Number(environment['UPSTREAM_PORT'] ?? 4100),
}

try {
  await run()
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exit(1)
}

async function run(): Promise<void> {
  for (const [name, port] of Object.entries(ports)) await requireFree(name, port, bind, 'npm run sandbox')
  const redirectUris = [`${publicUrl}/auth/callback`]
  const provider = await startProvider({ port: ports.PROVIDER_PORT, host, bind, clientId, redirectUris })
  const upstream = await startUpstream({ port: ports.UPSTREAM_PORT, host: upstreamHost, bind, provider })
  let stopping: Promise<unknown> | undefined
  const stop = (): void =>
    void (stopping ??= Promise.all([provider.close(), upstream.close()]).then(() => process.exit(0)))
  // A Ctrl-C comes twice: npm passes on what the terminal sends to all its processes.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, stop)
  process.stdout
    .write(`# The sandbox is running. Any e-mail address signs up, and all money is play money. Ctrl-C stops it.
# Save these lines as .env, start the server with "npm run dev", and open your page at PUBLIC_URL.
PUBLIC_URL=${publicUrl}
AUTH_URL=${provider.url}
API_URL=${upstream.url}
WS_URL=${upstream.wsUrl}
CLIENT_ID=${clientId}
HOST=127.0.0.1
PARTNER_OVERVIEW_PATH=/partners/analytics/v1/overview
IDENTITY_PATH=/account/v1/me
IDENTITY_POINTER=/data/user_id
`)
}
