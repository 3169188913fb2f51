import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { loadEnvFile } from 'node:process'
import { readOptions } from './options.ts'
import { portsOf, requireFree } from './ports.ts'
import { startProvider } from './provider.ts'
import { SANDBOX_SETTINGS } from './settings.ts'
import { startUpstream } from './upstream.ts'

/**
 * `npm run sandbox`: the provider and the trading service, for a server that is started separately. It prints the settings
 * of that server as a complete `.env`, and follows the PUBLIC_URL and CLIENT_ID of an existing one. With `--page` it starts the
 * server as well.
 */

const environment = process.env

try {
  const { page, host, writesEnv } = readOptions(process.argv.slice(2))
  if (page === undefined) await run(writesEnv)
  else {
    // Loaded only now, because a container with the sandbox alone has no server in it.
    const { startForPage } = await import('./page-server.ts')
    process.stdout.write(await startForPage({ page, host, environment }))
  }
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  process.exit(1)
}

async function run(writesEnv: boolean): Promise<void> {
  const isThere = existsSync('.env')
  if (isThere && writesEnv) throw new Error('There is a .env already. Move it away first, or start without --write-env')
  if (isThere) loadEnvFile('.env')
  // The host in their URLs, and the address on which they listen, which may differ in a container. Only browsers follow the
  // URLs of the provider, and only servers those of the trading service, so these two hosts may differ as well.
  const host = environment['SANDBOX_HOST'] ?? '127.0.0.1'
  const upstreamHost = environment['UPSTREAM_HOST'] ?? host
  const bind = environment['BIND'] ?? host
  const publicUrl = environment['PUBLIC_URL'] ?? 'http://localhost:3000'
  const clientId = environment['CLIENT_ID'] ?? SANDBOX_SETTINGS.CLIENT_ID
  const ports = portsOf(environment, ['PROVIDER_PORT', 'UPSTREAM_PORT'])
  await requireFree(ports, () => bind, `npm run sandbox${writesEnv ? ' -- --write-env' : ''}`)
  const redirectUris = [`${publicUrl}/auth/callback`]
  const provider = await startProvider({ port: ports.PROVIDER_PORT, host, bind, clientId, redirectUris })
  const upstream = await startUpstream({ port: ports.UPSTREAM_PORT, host: upstreamHost, bind, provider })
  let stopping: Promise<unknown> | undefined
  const stop = (): void =>
    void (stopping ??= Promise.all([provider.close(), upstream.close()]).then(() => process.exit(0)))
  // A Ctrl-C comes twice: npm passes on what the terminal sends to all its processes.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, stop)
  const settings = {
    PUBLIC_URL: publicUrl,
    AUTH_URL: provider.url,
    API_URL: upstream.url,
    WS_URL: upstream.wsUrl,
    ...SANDBOX_SETTINGS,
    CLIENT_ID: clientId,
    HOST: '127.0.0.1',
  }
  const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}\n`)
  const running =
    '# The sandbox is running. Any e-mail address signs up, and all money is play money. Ctrl-C stops it.\n'
  if (writesEnv) await writeFile('.env', lines.join(''), { flag: 'wx' })
  const next = writesEnv
    ? '# The settings of the server are in .env: start it with "npm run dev", and open your page at PUBLIC_URL.\n'
    : '# Save these lines as .env, start the server with "npm run dev", and open your page at PUBLIC_URL.\n'
  process.stdout.write(running + next + (writesEnv ? '' : lines.join('')))
}
