import cluster from 'node:cluster'
import { existsSync, readFileSync } from 'node:fs'
import { loadEnvFile } from 'node:process'
import { ConfigError, readConfig, type Config } from './config/config.ts'
import { ambiguousLines } from './config/env-readers.ts'
import { secretFiles } from './config/secrets.ts'
import type { SecretFiles } from './config/secret-files.ts'
import { threadPoolWarning } from './config/thread-pool.ts'
import { tracesSettings } from './config/traces.ts'
import { createLog } from './telemetry/log.ts'
import { catalogProblems } from './proxy/catalog-settings.ts'
import { descriptorWarning } from './ops/descriptor-limit.ts'
import { EXIT, exitAfterFlush } from './ops/exit.ts'
import type { OpsPort } from './ops/ops-listener.ts'
import { handleSignals } from './ops/signals.ts'
import { summary } from './ops/summary.ts'

const OLDEST_NODE = { major: 24, minor: 15 }

const [option, ...rest] = process.argv.slice(2)
const isCheck = option === '--check'
const isWarmUp = option === '--warm-up'
const isSessions = option === '--sessions'
if (!isSessions && (rest.length > 0 || (option !== undefined && !isCheck && !isWarmUp))) {
  exit(
    'Usage: node src/main.ts [--check | --warm-up | --sessions …]\n' +
      '  --check    check the settings and the services that they name, then exit\n' +
      '  --warm-up  fill NODE_COMPILE_CACHE with what a start needs, then exit; needs no settings\n' +
      '  --sessions list <subject> | end <subject> [<tag>]\n' +
      '             list or end the sessions of a subject, then exit; needs a running server with the same settings',
    EXIT.usage,
  )
}
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
if (major < OLDEST_NODE.major || (major === OLDEST_NODE.major && minor < OLDEST_NODE.minor)) {
  exit(`Node ${OLDEST_NODE.major}.${OLDEST_NODE.minor} or newer is needed; this is ${process.versions.node}.`)
}
if (isWarmUp) {
  const { warmUp } = await import('./warm-up.ts')
  const failure = await warmUp()
  if (failure !== undefined) exit(failure)
  process.exit(0)
}
// A worker inherits the settings that its supervisor has read.
const doubts = cluster.isPrimary && existsSync('.env') ? loadSettings('.env') : []
const config = configOrExit()
// What sends traces would read these itself, and go on sending them after they have changed.
for (const { name } of [tracesSettings.headers, tracesSettings.ownHeaders]) delete process.env[name]
// The modules below are imported dynamically, so that each process loads only what it needs.
if (isCheck) {
  const { check } = await import('./ops/check.ts')
  process.exit(await check(config, (line) => void process.stdout.write(`${line}\n`)))
}
if (isSessions) {
  const { sessionsCommand } = await import('./ops/sessions-command.ts')
  process.exit(await sessionsCommand(config, rest, (line) => void process.stdout.write(`${line}\n`)))
}
const serverLog = createLog(config.logLevel, {
  worker: cluster.worker?.id,
  isShared: config.workers > 1,
  isTraced: config.traces !== undefined,
})
const { log } = serverLog
// Until the server handles them. The start goes on meanwhile, so not even a slow reader of the log gets time.
handleSignals(() => void exitAfterFlush(serverLog, 0, 0))
if (cluster.isPrimary) {
  for (const warning of config.warnings) log.warn(warning)
  // The limit holds for each process; workers inherit it.
  const warning = descriptorWarning(config.relay.maxRelays)
  if (warning !== undefined) log.warn(warning)
  const threads = config.production ? threadPoolWarning(config.workers) : undefined
  if (threads !== undefined) log.warn(threads)
  log.info(summary(config), 'starting')
}

if (cluster.isPrimary) {
  const { OpsPort } = await import('./ops/ops-listener.ts')
  const ops = new OpsPort(config, serverLog)
  const complete = config.oauth.discovery === undefined ? config : await discovered(ops)
  const files = await openSecretFiles(complete)
  if (config.workers > 1) {
    const { supervise } = await import('./ops/supervisor.ts')
    await supervise(complete, serverLog, ops, files)
  } else {
    const { serve } = await import('./serve.ts')
    await serve(complete, serverLog, { ops, files })
  }
} else {
  const { serve } = await import('./serve.ts')
  await serve(config, serverLog)
}

async function discovered(ops: OpsPort): Promise<Config> {
  const { discoverOrExit } = await import('./ops/discover-or-exit.ts')
  return discoverOrExit(config, serverLog, ops)
}

/** Nothing is read, and nothing loaded, where no secret is in a file. */
async function openSecretFiles(complete: Config): Promise<SecretFiles | undefined> {
  const files = secretFiles(process.env, complete)
  if (files.size === 0) return undefined
  const { SecretFiles } = await import('./config/secret-files.ts')
  const tryRedis = async (url: string, present: string): Promise<string | undefined> => {
    // A supervisor has no store.
    const { tryCredentials } = await import('./store/credentials-trial.ts')
    return tryCredentials(url, present, complete.idempotency.replicas, (message) => log.warn(message))
  }
  return new SecretFiles(files, process.env, complete, { log, tryRedis })
}

/** Returns warnings about what was read. */
function loadSettings(file: string): string[] {
  try {
    loadEnvFile(file)
    return ambiguousLines(readFileSync(file, 'utf8'), process.env)
  } catch {
    // Container tools make a folder of a file that they are to mount and that does not exist.
    exit(`${file} must be a file that can be read, or must not exist.`)
  }
}

function configOrExit(): Config {
  try {
    return readConfig(process.env, catalogProblems(process.env), doubts)
  } catch (error) {
    if (error instanceof ConfigError) exit(error.message)
    throw error
  }
}

function exit(message: string, code: number = EXIT.config): never {
  process.stderr.write(`${message}\n`)
  process.exit(code)
}
