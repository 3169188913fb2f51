import { randomBytes } from 'node:crypto'
import { networkInterfaces } from 'node:os'
import { getCACertificates, setDefaultCACertificates } from 'node:tls'
import { readConfig } from '../src/config/config.ts'
import { OpsPort } from '../src/ops/ops-listener.ts'
import { handleSignals } from '../src/ops/signals.ts'
import { serve } from '../src/serve.ts'
import { createLog } from '../src/telemetry/log.ts'
import { certificateFor } from './certificate.ts'
import { AUTHORITY_PATH, startFront } from './front.ts'
import { freePort } from './listening.ts'
import { portsOf, requireFree } from './ports.ts'
import { startProvider } from './provider.ts'
import { SANDBOX_SETTINGS } from './settings.ts'
import { startUpstream } from './upstream.ts'

type Settings = Readonly<Record<string, string | undefined>>

const LOOPBACK = '127.0.0.1'

interface PageServer {
  readonly page: URL
  /** The name or address by which a phone reaches this machine; undefined if only this machine shall. */
  readonly host: string | undefined
  readonly environment: Settings
}

/**
 * Starts the sandbox and the server for a page, all in this process: whatever ends it ends everything. Sessions are in memory
 * unless there is a REDIS_URL. Other settings of the server come from the environment.
 * @returns what to tell the user
 * @throws Error that says what to do
 */
export async function startForPage({ page, host, environment }: PageServer): Promise<string> {
  const bind = host === undefined ? LOOPBACK : (environment['BIND'] ?? host)
  const ports = portsOf(environment, ['PORT', 'OPS_PORT', 'PROVIDER_PORT', 'UPSTREAM_PORT'])
  await requirePorts(ports, { page, host }, bind)
  const inside = bind === '0.0.0.0' ? LOOPBACK : bind
  const certificate = host === undefined ? undefined : certificateFor([...new Set([host, inside, LOOPBACK])])
  // The page and the server have one host, since cookies belong to it. The provider has another where it can, as in production.
  const publicUrl = host === undefined ? `http://${page.hostname}:${ports.PORT}` : `https://${host}:${ports.PORT}`
  const provider = await startProvider({
    port: ports.PROVIDER_PORT,
    host: host ?? (page.hostname === LOOPBACK ? 'localhost' : LOOPBACK),
    bind,
    clientId: SANDBOX_SETTINGS.CLIENT_ID,
    redirectUris: [`${publicUrl}/auth/callback`],
    tls: certificate,
  })
  const upstream = await startUpstream({ port: ports.UPSTREAM_PORT, provider, tls: certificate })
  const serverPort = certificate === undefined ? ports.PORT : await freePort()
  const settings = {
    PUBLIC_URL: publicUrl,
    AUTH_URL: provider.url,
    API_URL: upstream.url,
    WS_URL: upstream.wsUrl,
    ...SANDBOX_SETTINGS,
    HOST: LOOPBACK,
    PORT: String(serverPort),
    // Those that the log told to add, too.
    FRONTEND_ORIGINS: [host === undefined ? page.origin : [], publicUrl, environment['FRONTEND_ORIGINS'] ?? []]
      .flat()
      .join(','),
  }
  if (certificate === undefined) {
    await startServer({ ...environment, ...settings, FRONTEND_URL: page.origin })
    return `Open ${page.origin}. The server is at ${publicUrl}; any e-mail signs up; Ctrl-C stops everything.\n`
  }
  setDefaultCACertificates([...getCACertificates('default'), certificate.authority])
  await startServer({
    ...environment,
    ...settings,
    // The name of the provider may be known to browsers only.
    TOKEN_URL: `https://${inside}:${ports.PROVIDER_PORT}/oauth2/token`,
    SESSION_SECRETS: randomBytes(32).toString('hex'),
    TRUST_PROXY: 'none',
  })
  const server = new URL(`http://${LOOPBACK}:${serverPort}`)
  await startFront({ port: ports.PORT, bind, certificate, page, server })
  return `Open ${publicUrl} on the phone: it shows ${page.origin}. Any e-mail signs up; Ctrl-C stops everything.
The phone warns of the certificate, there and at ${provider.url}: go on. If no socket opens, install and trust ${publicUrl}${AUTHORITY_PATH} there.
`
}

/** Production, which any address but that of this machine is, requires a REDIS_URL. It is not used unless it is set. */
async function startServer(settings: Settings): Promise<void> {
  const { REDIS_URL } = settings
  const config = readConfig({ LOG_LEVEL: 'warn', ...settings, REDIS_URL: REDIS_URL ?? 'redis://127.0.0.1' })
  const log = createLog(config.logLevel, { worker: undefined, isShared: false })
  const store = REDIS_URL === undefined ? { redisUrl: undefined } : {}
  await serve({ ...config, ...store }, log, { ops: new OpsPort(config, log) })
  // In place of a drain, which the second signal of a Ctrl-C would turn into a failure: npm passes on what it gets itself.
  handleSignals(() => process.exit(0))
}

/** EAI_AGAIN: no name server answers, as on a computer without a network. */
const NOT_HERE: ReadonlySet<string> = new Set(['EADDRNOTAVAIL', 'ENOTFOUND', 'EAI_AGAIN'])

async function requirePorts(
  ports: Readonly<Record<string, number>>,
  { page, host }: Pick<PageServer, 'page' | 'host'>,
  bind: string,
): Promise<void> {
  for (const [name, port] of Object.entries(ports)) {
    if (!Number.isInteger(port) || port < 1 || port > 65_535) throw new Error(`${name} must be a port from 1 to 65535`)
  }
  const command = `npm run sandbox -- --page ${page.origin}${host === undefined ? '' : ` --host ${host}`}`
  const hostOf = (name: string): string => (/^(?:PORT|PROVIDER_PORT)$/.test(name) ? bind : LOOPBACK)
  await requireFree(ports, hostOf, command, Number(page.port || 80)).catch((error: NodeJS.ErrnoException) => {
    if (NOT_HERE.has(error.code ?? '')) throw new Error(notHere(bind), { cause: error })
    throw error
  })
}

function notHere(host: string): string {
  const own = Object.values(networkInterfaces())
    .flat()
    .flatMap((each) => (each?.family === 'IPv4' && !each.internal ? each.address : []))
  return `This machine does not have the address ${host}. Start with --host and one that it has: ${own.join(', ') || 'none'}`
}
