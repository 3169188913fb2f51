import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildPage } from './build-page.ts'
import { portsOf, requireFree } from './ports.ts'
import { startProvider } from './provider.ts'
import { startRedis } from './redis-process.ts'
import { SANDBOX_SETTINGS } from './settings.ts'
import { readSharing } from './sharing.ts'
import { startUpstream } from './upstream.ts'

/**
 * `npm run demo`: the server with the provider and the trading service of the sandbox. The provider is at 127.0.0.1 and the
 * server at localhost, so that they are two sites to a browser, as in production.
 */

const environment = process.env
const ports = portsOf(environment, ['PORT', 'OPS_PORT', 'PROVIDER_PORT', 'UPSTREAM_PORT'])
const HOST = '127.0.0.1'
const READY_MS = 20_000
const opsUrl = `http://${HOST}:${ports.OPS_PORT}`

const closers: (() => Promise<unknown>)[] = []
let isStopping = false

try {
  await run()
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  await stop(1)
}

async function run(): Promise<void> {
  await requireFree(ports, () => HOST, 'npm run demo')
  // A Ctrl-C comes twice: npm passes on what the terminal sends to all its processes.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => void stop(0))

  const publicUrl = `http://localhost:${ports.PORT}`
  const provider = await startProvider({
    port: ports.PROVIDER_PORT,
    clientId: SANDBOX_SETTINGS.CLIENT_ID,
    redirectUris: [`${publicUrl}/auth/callback`],
  })
  closers.push(() => provider.close())
  const upstream = await startUpstream({ port: ports.UPSTREAM_PORT, provider, sharing: () => readSharing(opsUrl) })
  closers.push(() => upstream.close())
  const redisUrl = await redis()
  const { DEV_INSECURE_COOKIES: insecureCookies, OPS_TOKEN: opsToken, PUBLIC_FEED: feed = 'shared' } = environment

  const child = startServer({
    PUBLIC_URL: publicUrl,
    AUTH_URL: provider.url,
    API_URL: upstream.url,
    WS_URL: upstream.wsUrl,
    ...SANDBOX_SETTINGS,
    STATIC_DIR: await page(),
    PUBLIC_FEED: feed,
    HOST,
    PORT: String(ports.PORT),
    OPS_PORT: String(ports.OPS_PORT),
    LOG_LEVEL: environment['LOG_LEVEL'] ?? 'error',
    ...(redisUrl !== undefined && { REDIS_URL: redisUrl }),
    ...(opsToken !== undefined && { OPS_TOKEN: opsToken }),
    ...(insecureCookies !== undefined && { DEV_INSECURE_COOKIES: insecureCookies }),
  })
  await untilReady(child)
  const where = redisUrl === undefined ? 'in memory (no redis-server found)' : 'in Redis'
  process.stdout.write(`Open ${publicUrl} (sessions ${where}; ${feed} feed; any e-mail signs up; Ctrl-C stops)\n`)
}

/** Builds the page, for this run of the demo. @returns its directory */
async function page(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'demo-page-'))
  closers.push(() => rm(directory, { recursive: true }))
  await buildPage(directory)
  return directory
}

/** REDIS_URL, or the address of a new redis-server, or undefined if none is installed. */
async function redis(): Promise<string | undefined> {
  if (environment['REDIS_URL']) return environment['REDIS_URL']
  if (spawnSync('redis-server', ['--version']).error !== undefined) return undefined
  const started = await startRedis()
  closers.push(() => started.close())
  return started.url
}

function startServer(settings: Record<string, string>): ChildProcess {
  const main = fileURLToPath(new URL('../src/main.ts', import.meta.url))
  const { PATH = '' } = environment
  const child = spawn(process.execPath, [main], {
    env: { PATH, ...settings },
    stdio: ['ignore', 'inherit', 'inherit'],
    // In a process group of its own, so that Ctrl-C reaches only this process, which then stops everything in order.
    detached: true,
  })
  closers.unshift(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGTERM')
    await once(child, 'exit')
  })
  return child
}

async function untilReady(child: ChildProcess): Promise<void> {
  const giveUpAt = Date.now() + READY_MS
  while (Date.now() < giveUpAt) {
    if (child.exitCode !== null) throw new Error('The server stopped; see above.')
    const response = await fetch(`${opsUrl}/readyz`).catch(() => undefined)
    if (response?.ok === true) {
      child.once('exit', () => void stop(1))
      return
    }
    await new Promise((resolve) => void setTimeout(resolve, 50))
  }
  throw new Error('The server did not become ready in time.')
}

async function stop(code: number): Promise<void> {
  if (isStopping) return
  isStopping = true
  for (const close of closers) await close().catch(() => undefined)
  process.exit(code)
}
