import type { IncomingMessage } from 'node:http'
import { Writable } from 'node:stream'
import { type Logger, pino } from 'pino'
import type { Test } from 'tap'
import { freePort } from '../../../sandbox/listening.ts'
import { startRedis, type RedisProcess } from '../../../sandbox/redis-process.ts'
import { buildApp, type App } from '../../../src/app.ts'
import type { Changing } from '../../../src/config/changing.ts'
import { readConfig, type Config } from '../../../src/config/config.ts'
import { SecretFiles } from '../../../src/config/secret-files.ts'
import { secretFiles } from '../../../src/config/secrets.ts'
import { instanceName, loggerOptions } from '../../../src/telemetry/log.ts'
import { createOpsListener } from '../../../src/ops/ops-listener.ts'
import { MemoryStore } from '../../../src/store/memory-store.ts'
import type { Store } from '../../../src/store/store.ts'
import { keepCookiesOutOfLogs, scanLog } from '../telemetry/log-scan.ts'
import { within } from '../time/until.ts'

/** A drain of 20 s may be needed, and not more. */
const CLOSE_DEADLINE_MS = 25_000

/** The client id of every test. */
export const CLIENT_ID = 'test-client'
/** The secrets of every server, which all instances must share. */
export const SECRETS = 'test-secret-of-thirty-two-bytes-or-more'

/** One line of a server's log. */
export type LogLine = Record<string, unknown> & { msg: string }

/** A running server: the whole application in this process, on ports of its own. */
export interface TestServer {
  readonly url: string
  readonly opsUrl: string
  readonly port: number
  readonly app: App
  readonly log: LogLine[]
  close(): Promise<void>
}

/** A redis-server that ends with the test. */
export async function testRedis(t: Test, options: readonly string[] = []): Promise<RedisProcess> {
  const redis = await startRedis(options)
  t.teardown(() => redis.close())
  return redis
}

/**
 * A server with these settings that ends with the test.
 * @param ownStore keeps its sessions; without one they are in Redis, or in memory where there is no REDIS_URL
 */
export async function testServer(t: Test, settings: Record<string, string>, ownStore?: Store): Promise<TestServer> {
  const port = Number(settings['PORT'] ?? (await freePort()))
  const environment = {
    PUBLIC_URL: `http://localhost:${port}`,
    CLIENT_ID,
    SESSION_SECRETS: SECRETS,
    HOST: '127.0.0.1',
    OPS_PORT: '0',
    LOG_LEVEL: 'debug',
    ...settings,
    // Not both.
    ...(settings['SESSION_SECRETS_FILE'] !== undefined && { SESSION_SECRETS: '' }),
    PORT: String(port),
  }
  const config = readConfig(environment)
  const lines: LogLine[] = []
  const instance = instanceName()
  const options = loggerOptions(config.logLevel, { instance, isTraced: config.traces !== undefined })
  const log = pino(options, intoLines(lines))
  const store = ownStore ?? (config.redisUrl === undefined ? new MemoryStore() : await redisStore(config.redisUrl, log))
  const files = openSecretFiles(environment, config, log)
  const app = await buildApp(config, { store, log, instance, secretFiles: files })
  app.server.server.on('request', ({ headers }: IncomingMessage) => keepCookiesOutOfLogs(headers.cookie))
  await app.server.listen({ host: '127.0.0.1', port })
  const ops = createOpsListener(() => app.ops, { token: config.ops.token, log })
  const opsUrl = await ops.listen({ host: '127.0.0.1', port: 0 })
  let closed: Promise<void> | undefined
  const close = (): Promise<void> =>
    (closed ??= app.close().then(async () => {
      files?.close()
      await Promise.all([ops.close(), store.close()])
    }))
  t.teardown(async () => {
    await within(close(), 'a server closes', CLOSE_DEADLINE_MS)
    scanLog(t, lines.map((line) => JSON.stringify(line)).join('\n'))
  })
  return { url: `http://localhost:${port}`, opsUrl, port, app, log: lines, close }
}

/** The files that the settings name, which are read much more often than those of a server. */
function openSecretFiles(environment: Record<string, string>, config: Config, log: Logger): SecretFiles | undefined {
  const files = secretFiles(environment, config)
  const tryRedis = async (url: string, present: string): Promise<string | undefined> => {
    const { tryCredentials } = await import('../../../src/store/credentials-trial.ts')
    return tryCredentials(url, present, config.idempotency.replicas)
  }
  return files.size === 0 ? undefined : new SecretFiles(files, environment, config, { log, tryRedis, readMs: 20 })
}

async function redisStore(url: Changing<string>, log: Logger): Promise<Store> {
  const { RedisStore } = await import('../../../src/store/redis-store.ts')
  const store = RedisStore.connect(url, log)
  await store.connected(5000)
  return store
}

function intoLines(lines: LogLine[]): Writable {
  return new Writable({
    write(chunk: Buffer, _encoding, done) {
      for (const line of chunk.toString().trim().split('\n')) lines.push(JSON.parse(line) as LogLine)
      done()
    },
  })
}
