import cluster from 'node:cluster'
import { flushCompileCache } from 'node:module'
import { buildApp } from './app.ts'
import type { Config } from './config/config.ts'
import type { SecretFiles } from './config/secret-files.ts'
import { takeSecrets } from './config/secrets.ts'
import type { ServerLog } from './telemetry/log.ts'
import { listenOrExit } from './ops/exit.ts'
import type { OpsPort, OpsSource } from './ops/ops-listener.ts'
import { installShutdown } from './ops/shutdown.ts'
import { handleSupervisorMessages } from './ops/worker-channel.ts'
import { MemoryStore } from './store/memory-store.ts'
import { RedisStore } from './store/redis-store.ts'
import { polls } from './time/polls.ts'

/** How long the start waits for the session store before the server listens anyway. */
const STORE_WAIT_MS = 3000
/** How soon the log says that a server is ready which was not when it began to listen. */
const READY_POLL_MS = 250
/** A worker's time limit is shorter by this, so that it exits and writes its log before its supervisor kills it. */
const WORKER_AHEAD_MS = 500

/** What the only process of a server has, and a worker has not: its supervisor has them. */
interface OnlyProcess {
  readonly ops: OpsPort
  /** Absent where no secret is in a file. */
  readonly files: SecretFiles | undefined
}

/** Runs the server in this process, the only one or a worker. */
export async function serve(
  config: Config,
  serverLog: ServerLog,
  { ops, files }: Partial<OnlyProcess> = {},
): Promise<void> {
  const { log, lines, instance } = serverLog
  const store = config.redisUrl === undefined ? new MemoryStore() : RedisStore.connect(config.redisUrl, log)
  const app = await buildApp(config, { store, log, logLines: lines, instance, secretFiles: files })

  let isClosing = false
  const shutdown = installShutdown({
    serverLog,
    drainMs: cluster.isWorker ? Math.max(config.drainMs - WORKER_AHEAD_MS, config.drainMs / 2) : config.drainMs,
    ignoresSignals: cluster.isWorker,
    async close(isCrash) {
      isClosing = true
      files?.close()
      await app.close(isCrash ? 0 : config.drainWaitMs)
      await Promise.all([ops?.close(), store.close()])
    },
  })
  if (cluster.isWorker) {
    handleSupervisorMessages(app.ops, {
      drain: () => shutdown({ by: 'supervisor' }),
      takeSecrets: (texts) => takeSecrets(config, texts),
    })
  }

  const { host, port } = config.listen
  // The server is alive from here on, and ready once it has reached the store or has waited for it long enough.
  await ops?.report(app.ops)
  if (store instanceof RedisStore) await store.connected(STORE_WAIT_MS)
  if (isClosing) return
  await listenOrExit(app.server, { host, port }, serverLog)
  sayWhenReady(app.ops, log, { publicUrl: config.publicUrl })
  // The next start uses this cache, for instance that of a worker that replaces this one.
  flushCompileCache()
}

/** Logs `ready` when it is true; and before that, if it is not true yet, why. */
function sayWhenReady(ops: OpsSource, log: ServerLog['log'], details: object): void {
  let isSaid = false
  const end = polls(
    async () => {
      const missing = await ops.reasons()
      if (missing.length === 0) {
        end()
        log.info(details, 'ready')
      } else if (!isSaid) log.warn({ reasons: missing }, 'the server listens, but is not ready')
      isSaid = true
    },
    READY_POLL_MS,
    0,
  )
}
