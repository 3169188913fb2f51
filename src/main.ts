import { existsSync } from 'node:fs'
import { loadEnvFile } from 'node:process'
import closeWithGrace from 'close-with-grace'
import { buildApp } from './app.ts'
import { ConfigError, readConfig, type Config } from './config.ts'
import { createLog } from './log.ts'
import { MemoryStore } from './store/memory-store.ts'
import { RedisStore } from './store/redis-store.ts'

const EXIT_CONFIG = 78
const OLDEST_NODE = 24
const STORE_WAIT_MS = 3000

const config = configOrExit()
const log = createLog(config.logLevel)
for (const warning of config.warnings) log.warn(warning)
const store = config.redisUrl === undefined ? new MemoryStore() : RedisStore.connect(config.redisUrl, log)
const app = await buildApp(config, { store, log })

closeWithGrace({ delay: config.drainMs, logger: log }, async ({ signal, err }) => {
  if (err !== undefined) log.fatal({ err }, 'stopping after an unexpected error')
  else log.info({ signal }, 'draining')
  await app.close()
  await store.close()
})

const { host, port, opsPort } = config.listen
try {
  // Alive from here on; ready once the store has been reached, or has been waited for long enough.
  await app.ops.listen({ host, port: opsPort })
  if (store instanceof RedisStore) await store.connected(STORE_WAIT_MS)
  await app.server.listen({ host, port })
} catch (error) {
  log.fatal({ err: error }, 'cannot listen')
  exit(`Cannot listen on ${host}, ports ${port} and ${opsPort}: ${(error as Error).message}`, 1)
}
log.info(
  { publicUrl: config.publicUrl, sessions: config.redisUrl === undefined ? 'memory' : 'redis' },
  'ready',
)

function configOrExit(): Config {
  if (Number.parseInt(process.versions.node, 10) < OLDEST_NODE) {
    exit(`Node ${OLDEST_NODE} or newer is needed, this is ${process.versions.node}.`)
  }
  if (existsSync('.env')) loadEnvFile('.env')
  try {
    return readConfig(process.env)
  } catch (error) {
    if (error instanceof ConfigError) exit(error.message)
    throw error
  }
}

function exit(message: string, code = EXIT_CONFIG): never {
  process.stderr.write(`${message}\n`)
  process.exit(code)
}
